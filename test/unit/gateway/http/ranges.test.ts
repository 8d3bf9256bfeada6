import { createHash } from 'node:crypto'
import { expectError } from '../../../support/gateway/expect-error.js'
import { testRanges, vectorBody } from '../../../support/gateway/range-vectors.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { useServers } from '../../../support/server/test-server.js'
import { loseChunks } from '../../../support/storage/lose-rows.js'

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start()

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The entity tag covers the type, which a 304 does not send again. */
const tagOf = (body: Uint8Array): string => sha256Of(Buffer.from(`${sha256Of(body)} image/x-test`))

async function inscribed(body: Uint8Array): Promise<string> {
  const transaction = chain.inscribe({ contentType: 'image/x-test', body })
  expect((await server.submit(beefOf(transaction), ['tm_ordinals'])).status).toBe(200)
  return `/content/${transaction.outpoint(0)}`
}

describe('content answers as the vectors say', () => {
  testRanges({
    server,
    serve: async (body) => ({ path: await inscribed(body), hash: tagOf(body) }),
    cacheControl: 'public, max-age=31536000, immutable',
  })
})

describe('a body that the store has in part', () => {
  const body = vectorBody(900_000).reverse()
  let path = ''
  beforeAll(async () => {
    path = await inscribed(body)
    expect(loseChunks(server.dataDir, body, 1)).toBe(1)
  })
  const asked = (range: string) => server.ask(path, { headers: { Range: range } })

  test.each(['bytes=0-', 'bytes=0-262144'])(
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
