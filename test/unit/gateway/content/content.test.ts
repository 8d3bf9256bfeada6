import { createHash } from 'node:crypto'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../../support/protocol/fake-chain.js'
import { type Answer, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start()

async function submitted(transaction: FakeTransaction): Promise<FakeTransaction> {
  await server.take(beefOf(transaction), ['tm_ordinals'])
  return transaction
}

/** Inscribes, submits and asks for it. */
async function inscribed(contentType: string, body: Uint8Array = utf8('body')): Promise<Answer> {
  const transaction = await submitted(chain.inscribe({ contentType, body }))
  return await server.ask(`/content/${transaction.outpoint(0)}`)
}

const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'

describe('what a browser would run', () => {
  test.each(['text/html', 'image/svg+xml', 'text/javascript'])('%s comes in a sandbox', async (type) => {
    const { status, headers } = await inscribed(type, utf8('<script>1</script>'))
    expect(status).toBe(200)
    expect(headers['content-type']).toBe(type)
    expect(headers['content-security-policy']).toBe(SANDBOX)
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['cross-origin-resource-policy']).toBe('cross-origin')
  })

  test('stays in it when it is not sent again, and when only its head is asked for', async () => {
    const page = await submitted(chain.inscribe({ contentType: 'text/html', body: utf8('<p>') }))
    const path = `/content/${page.outpoint(0)}`
    const { headers } = await server.ask(path)
    const tag = headers.etag ?? ''
    for (const question of [{ headers: { 'If-None-Match': tag } }, { method: 'HEAD' }]) {
      expect((await server.ask(path, question)).headers['content-security-policy']).toBe(SANDBOX)
    }
  })

  test('is not served as a service worker', async () => {
    const script = await submitted(
      chain.inscribe({ contentType: 'text/javascript', body: utf8('onfetch = null') }),
    )
    const path = `/content/${script.outpoint(0)}`
    const refused = await server.ask(path, { headers: { 'Service-Worker': 'script' } })
    expect(refused.status).toBe(400)
    expect(refused.json).toEqual({ error: expect.stringContaining('service worker'), code: 'BAD_BODY' })
    expect(refused.headers['cache-control']).toBe('no-store')
    expect((await server.ask(path)).status).toBe(200)
  })
})

test('an operator’s directives join the sandbox, in one header', async () => {
  const strict = await servers.start({ CONTENT_SECURITY_POLICY: "frame-ancestors 'self'; img-src *" })
  const page = chain.inscribe({ contentType: 'text/html', body: utf8('<p>') })
  await strict.submit(beefOf(page), ['tm_ordinals'])
  const policy = `${SANDBOX}; frame-ancestors 'self'; img-src *`
  const preview = { method: 'POST', headers: { 'Content-Type': 'image/svg+xml' }, body: '<svg/>' }
  for (const answer of [
    await strict.ask(`/content/${page.outpoint(0)}`),
    await strict.ask('/svc/gateway/preview', preview),
  ])
    expect(answer.headers['content-security-policy']).toBe(policy)
})

test('what a browser would not run comes without a sandbox, but is not sniffed', async () => {
  const { headers } = await inscribed('image/png', utf8('<html><script>1</script>'))
  expect(headers['content-type']).toBe('image/png')
  expect(headers['content-security-policy']).toBeUndefined()
  expect(headers['x-content-type-options']).toBe('nosniff')
})

test.each([0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024 + 7])(
  'a body of %i bytes comes back complete, with its tag',
  async (length) => {
    const body = new Uint8Array(length).map((_, at) => (at * 7 + (at >> 8)) & 0xff)
    const answer = await inscribed('application/x-bytes', body)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-length']).toBe(String(length))
    expect(answer.body.equals(body)).toBe(true)
    const sha256 = createHash('sha256').update(body).digest('hex')
    const tag = createHash('sha256').update(`${sha256} application/x-bytes`).digest('hex')
    expect(answer.headers.etag).toBe(`"${tag}"`)
  },
)

describe('pages of other origins', () => {
  const origin = { Origin: 'https://elsewhere.example' }
  /** Every header that `docs/spec/http.md` names. */
  const named = [
    'Accept-Ranges',
    'Cache-Control',
    'Content-Encoding',
    'Content-Range',
    'Content-Security-Policy',
    'Content-Type',
    'Cross-Origin-Resource-Policy',
    'ETag',
    'Retry-After',
    'X-Content-Type-Options',
    'X-Map',
    'X-Ord-Seq',
    'X-Origin',
    'X-Outpoint',
    'X-Parent',
  ]

  test.each(['/content/x', '/svc/names/origin/a', '/health/live'])(
    'may ask before they ask for %s',
    async (path) => {
      const { status, headers, body } = await server.ask(path, {
        method: 'OPTIONS',
        headers: {
          ...origin,
          'Access-Control-Request-Method': 'POST',
          'Access-Control-Request-Headers': 'content-type,x-topics,x-aggregation',
        },
      })
      expect(status).toBe(204)
      expect(body.length).toBe(0)
      expect(headers['access-control-allow-origin']).toBe('*')
      expect(headers['access-control-allow-methods']?.split(',')).toEqual(
        expect.arrayContaining(['GET', 'HEAD', 'POST']),
      )
      expect(headers['access-control-allow-headers']).toBe('content-type,x-topics,x-aggregation')
    },
  )

  test.each([
    ['an answer', '/health/live', 200],
    ['an error', '/svc/names/origin/A', 400],
    ['an error of the overlay', '/getDocumentationForTopicManager', 400],
    ['a route that is not there', '/nowhere', 404],
  ])('may read %s and its headers', async (_, path, expected) => {
    const { status, headers } = await server.ask(path, { headers: origin })
    expect(status).toBe(expected)
    expect(headers['access-control-allow-origin']).toBe('*')
    const exposed = String(headers['access-control-expose-headers']).split(',')
    expect(exposed).toEqual(expect.arrayContaining(named))
    expect(headers['access-control-allow-credentials']).toBeUndefined()
  })
})
