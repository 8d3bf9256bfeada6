import { createHash } from 'node:crypto'
import { publisher, text } from '../../../support/gateway/site.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start()
const published = publisher({ server, chain })
const pathOf = async (body: string | Uint8Array, contentType: string): Promise<string> =>
  `/content/${(await published(typeof body === 'string' ? text(body, contentType) : { contentType, body })).outpoint(0)}`

const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'

test.each<[type: string, policy: string | undefined]>([
  ['text/html', SANDBOX],
  ['image/svg+xml', SANDBOX],
  ['text/javascript', SANDBOX],
  ['image/png', undefined],
])('%s has the policy %s, also as a head or not sent again, and is not sniffed', async (type, policy) => {
  const path = await pathOf('<html><script>1</script>', type)
  const { headers } = await server.ask(path)
  expect(headers).toMatchObject({
    'content-type': type,
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'cross-origin',
  })
  for (const question of [{}, { headers: { 'If-None-Match': headers.etag ?? '' } }, { method: 'HEAD' }])
    expect((await server.ask(path, question)).headers['content-security-policy']).toBe(policy)
})

test('no script is served as a service worker', async () => {
  const path = await pathOf('onfetch = null', 'text/javascript')
  const refused = await server.ask(path, { headers: { 'Service-Worker': 'script' } })
  expect(refused).toMatchObject({ status: 400, headers: { 'cache-control': 'no-store' } })
  expect(refused.json).toEqual({ error: expect.stringContaining('service worker'), code: 'BAD_BODY' })
  expect((await server.ask(path)).status).toBe(200)
})

test('an operator’s directives join the sandbox, in one header', async () => {
  const strict = await servers.start({ CONTENT_SECURITY_POLICY: "frame-ancestors 'self'; img-src *" })
  const page = await publisher({ server: strict, chain })(text('<p>', 'text/html'))
  const preview = { method: 'POST', headers: { 'Content-Type': 'image/svg+xml' }, body: '<svg/>' }
  for (const [path, question] of [
    [`/content/${page.outpoint(0)}`, {}],
    ['/svc/gateway/preview', preview],
  ] as const) {
    const { headers } = await strict.ask(path, question)
    expect(headers['content-security-policy']).toBe(`${SANDBOX}; frame-ancestors 'self'; img-src *`)
  }
})

test.each([0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024 + 7])(
  'a body of %i bytes comes back complete, with its tag',
  async (length) => {
    const sent = new Uint8Array(length).map((_, at) => (at * 7 + (at >> 8)) & 0xff)
    const { status, headers, body } = await server.ask(await pathOf(sent, 'application/x-bytes'))
    expect([status, headers['content-length'], body.equals(sent)]).toEqual([200, String(length), true])
    const sha256 = createHash('sha256').update(sent).digest('hex')
    const tag = createHash('sha256').update(`${sha256} application/x-bytes`).digest('hex')
    expect(headers.etag).toBe(`"${tag}"`)
  },
)

describe('pages of other origins', () => {
  const Origin = 'https://elsewhere.example'
  const asked = 'content-type,x-topics,x-aggregation'
  /** Every header that `docs/spec/http.md` names. */
  const named = `Accept-Ranges Cache-Control Content-Encoding Content-Range Content-Security-Policy Content-Type
    Cross-Origin-Resource-Policy ETag Retry-After X-Content-Type-Options X-Map X-Ord-Seq X-Origin X-Outpoint X-Parent`

  test.each(['/content/x', '/svc/names/origin/a', '/health/live'])(
    'may ask before they ask %s',
    async (path) => {
      const preflight = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': asked }
      const { status, headers, body } = await server.ask(path, {
        method: 'OPTIONS',
        headers: { Origin, ...preflight },
      })
      expect([status, body.length, headers['access-control-allow-origin']]).toEqual([204, 0, '*'])
      expect(headers['access-control-allow-methods']).toMatch(/^GET,HEAD,(\w+,)*POST/)
      expect(headers['access-control-allow-headers']).toBe(asked)
    },
  )

  test.each([
    ['an answer', '/health/live', 200],
    ['an error', '/svc/names/origin/A', 400],
    ['an error of the overlay', '/getDocumentationForTopicManager', 400],
    ['a route that is not there', '/nowhere', 404],
  ])('may read %s and its headers', async (_, path, expected) => {
    const { status, headers } = await server.ask(path, { headers: { Origin } })
    expect([status, headers['access-control-allow-origin']]).toEqual([expected, '*'])
    const exposed = String(headers['access-control-expose-headers']).split(',')
    expect(exposed).toEqual(expect.arrayContaining(named.split(/\s+/)))
    expect(headers['access-control-allow-credentials']).toBeUndefined()
  })
})
