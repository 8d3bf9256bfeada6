import fc from 'fast-check'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { CHUNK_BYTES } from '../../../backend/src/graph/records.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import type { ByteRange } from '../../../backend/src/read/content.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { closeStores, openStore, record } from '../../support/storage/stores.js'

const LARGEST = 4 * CHUNK_BYTES

/** Bodies of 0 bytes to 1 MiB, that end at a border of chunks, beside one, and in the middle of one. */
const bodies = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 700_001, LARGEST - 1, LARGEST].map(
  (length, seed) => {
    const bytes = Uint8Array.from({ length }, (_, at) => at * 7 + (at >> 8) * 3 + seed)
    return { bytes, sha256: sha256(bytes).toString('hex') }
  },
)

/** A position anywhere, or at a border of chunks or beside it; some are past the end. */
const position = fc.oneof(
  fc.nat({ max: LARGEST + 10 }),
  fc
    .tuple(fc.nat({ max: 4 }), fc.constantFrom(-2, -1, 0, 1, 2))
    .map(([chunk, beside]) => Math.max(chunk * CHUNK_BYTES + beside, 0)),
)

describe('a store of facts', () => {
  let read: (sha256: string, range: ByteRange) => Promise<Buffer>
  beforeAll(async () => {
    const chain = new FakeChain()
    const opened = await openStore()
    const { store } = opened
    store.deriveBy({
      rules: admissionRules({ deployment: chain.deployment }),
      pending: { maxTransactions: 100, maxBytes: 1024 * 1024 },
    })
    for (const { bytes } of bodies)
      await record(opened, { transaction: chain.inscribe({ contentType: 'text/plain', body: bytes }) })
    read = async (hash, range) => {
      const chunks: Uint8Array[] = []
      for await (const chunk of store.content.chunks(hash, range)) chunks.push(chunk)
      return Buffer.concat(chunks)
    }
  })
  afterAll(closeStores)

  test('a range of a body is that slice of its bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...bodies), position, position, async ({ bytes, sha256 }, a, b) => {
        const [from, to] = a < b ? [a, b] : [b, a]
        const part = await read(sha256, { from, length: to - from })
        expect(part.equals(bytes.subarray(from, to))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('a range of a body that is not there is nothing', async () => {
    expect(await read('cd'.repeat(32), { from: 5, length: 10 })).toHaveLength(0)
  })
})
