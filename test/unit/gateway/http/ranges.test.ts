import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { expectError } from '../../../support/gateway/expect-error.js'
import { partsOf, testRanges, vectorBody } from '../../../support/gateway/range-vectors.js'
import { publisher } from '../../../support/gateway/site.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'
import { loseChunks } from '../../../support/storage/changed-files.js'

const servers = useServers()
const server = await servers.start()
const published = publisher({ server, chain: new FakeChain() })

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const hexOf = (ascii: string): string => Buffer.from(ascii).toString('hex')

/** The entity tag covers the type, which a 304 does not send again. */
const tagOf = (body: Uint8Array): string => sha256Of(Buffer.from(`${sha256Of(body)} image/x-test`))

async function inscribed(body: Uint8Array, contentType = 'image/x-test'): Promise<string> {
  return `/content/${(await published({ contentType, body })).outpoint(0)}`
}

describe('content answers as the vectors say', () => {
  testRanges({
    server,
    serve: async (body) => ({ path: await inscribed(body), hash: tagOf(body) }),
    cacheControl: 'public, max-age=31536000, immutable',
  })
})

test('parts have the type of the whole, beyond ASCII too, and a policy where browsers run it', async () => {
  const body = Buffer.from('<p>a page</p>')
  const path = await inscribed(body, 'text/html;name="é"')
  const whole = await server.ask(path)
  const cut = await server.ask(path, { headers: { Range: 'bytes=0-2,-4' } })
  expect(cut.headers['content-security-policy']).toBe(whole.headers['content-security-policy'])
  const type = whole.headers['content-type']
  expect(type).toBe(Buffer.from('text/html;name="é"').toString('latin1'))
  expect(partsOf(cut.headers['content-type'], cut.body)).toEqual([
    { headers: { 'content-type': type, 'content-range': 'bytes 0-2/13' }, body: hexOf('<p>') },
    { headers: { 'content-type': type, 'content-range': 'bytes 9-12/13' }, body: hexOf('</p>') },
  ])
})

test('what has a Content-Encoding comes in one range or whole: parts have none', async () => {
  const body = gzipSync('text that is published compressed')
  const path = await inscribed(body, 'text/plain')
  const asked = (range: string, coding: string) =>
    server.ask(path, { headers: { Range: range, 'Accept-Encoding': coding } })
  expect((await asked('bytes=0-1', 'gzip')).body.equals(body.subarray(0, 2))).toBe(true)
  const whole = await asked('bytes=0-1,5-6', 'gzip')
  expect([whole.status, whole.headers['content-encoding'], whole.body]).toEqual([200, 'gzip', body])
  const plain = await asked('bytes=0-3,-4', 'identity')
  expect(plain.headers['content-encoding']).toBeUndefined()
  const parts = partsOf(plain.headers['content-type'], plain.body).map((part) => part.body)
  expect(parts).toEqual([hexOf('text'), hexOf('ssed')])
})

describe('a body that the store has in part', () => {
  const body = vectorBody(900_000).reverse()
  let path = ''
  beforeAll(async () => {
    path = await inscribed(body)
    expect(loseChunks(server.dataDir, body, 1)).toBe(1)
  })
  const asked = (range: string) => server.ask(path, { headers: { Range: range }, agent: false })

  test.each(['bytes=0-', 'bytes=0-262144', 'bytes=0-9,300000-310000'])(
    'breaks the connection where %s needs what is gone, once the head is out',
    async (range) => {
      await expect(asked(range)).rejects.toThrow(/aborted|hang up|ECONNRESET/)
    },
  )

  test.each(['bytes=262144-262145', 'bytes=300000-310000'])(
    'is our fault where %s needs what is gone from its first byte on',
    async (range) => {
      expectError(await asked(range), { status: 503, code: 'DAMAGED' })
    },
  )

  test('still answers with what is there', async () => {
    expect((await asked('bytes=0-262143')).body.equals(body.subarray(0, 262_144))).toBe(true)
    expect((await asked('bytes=-5')).body.equals(body.subarray(-5))).toBe(true)
  })
})
