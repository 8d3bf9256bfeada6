import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { type ByteRange, CHUNK_BYTES } from '../../../backend/src/graph/graph-store.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

const LARGEST = 4 * CHUNK_BYTES

/** Bodies of 0 bytes to 1 MiB, that end at a border of chunks, beside one, and in the middle of one. */
const bodies = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 700_001, LARGEST - 1, LARGEST].map(
  (length, seed) => {
    const bytes = Uint8Array.from({ length }, (_, at) => at * 7 + (at >> 8) * 3 + seed)
    return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') }
  },
)

/** A position anywhere, or at a border of chunks or beside it; some are past the end. */
const position = fc.oneof(
  fc.nat({ max: LARGEST + 10 }),
  fc
    .tuple(fc.nat({ max: 4 }), fc.constantFrom(-2, -1, 0, 1, 2))
    .map(([chunk, beside]) => Math.max(chunk * CHUNK_BYTES + beside, 0)),
)

onEachTableEngine(({ openStore, closeStores, runs }) => {
  /** A store that has the bodies, and counts what it reads. */
  async function storeOfBodies() {
    const { store, reads } = await openStore()
    const outputs = bodies.map(({ bytes, sha256 }, vout) => ({
      outpoint: { txid: 'ab'.repeat(32), vout },
      satoshis: 1,
      content: { sha256, contentType: 'text/plain', length: bytes.length },
    }))
    await store.record(graphRecords({ outputs, contents: bodies }))
    const read = async (sha256: string, range?: ByteRange) => {
      const before = reads()
      const chunks: Uint8Array[] = []
      for await (const chunk of store.content.chunks(sha256, range)) chunks.push(chunk)
      return { bytes: Buffer.concat(chunks), reads: reads() - before }
    }
    return { read }
  }

  let read: Awaited<ReturnType<typeof storeOfBodies>>['read']
  beforeAll(async () => {
    read = (await storeOfBodies()).read
  })
  afterAll(closeStores)

  test('a range of a body is that slice of its bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...bodies), position, position, async ({ bytes, sha256 }, a, b) => {
        const [from, to] = a < b ? [a, b] : [b, a]
        const part = await read(sha256, { from, length: to - from })
        expect(part.bytes.equals(bytes.subarray(from, to))).toBe(true)
      }),
      { numRuns: runs(500) },
    )
  })

  test('a range of a body that is not there is nothing', async () => {
    expect((await read('cd'.repeat(32), { from: 5, length: 10 })).bytes).toHaveLength(0)
  })

  test.each<[string, ByteRange, number]>([
    ['one byte', { from: 2 * CHUNK_BYTES + 5, length: 1 }, 1],
    ['the last byte', { from: LARGEST - 1, length: 1 }, 1],
    ['one chunk exactly', { from: CHUNK_BYTES, length: CHUNK_BYTES }, 1],
    ['the two bytes at a border', { from: CHUNK_BYTES - 1, length: 2 }, 2],
    ['a chunk and a byte', { from: CHUNK_BYTES, length: CHUNK_BYTES + 1 }, 2],
    ['all of it', { from: 0, length: LARGEST }, 4],
  ])('%s of a large body is read from the chunks that hold it, and no others', async (_, range, expected) => {
    const { bytes, sha256 } = bodies.at(-1) ?? { bytes: new Uint8Array(), sha256: '' }
    const part = await read(sha256, range)
    expect(part.bytes.equals(bytes.subarray(range.from, range.from + range.length))).toBe(true)
    expect(part.reads).toBe(expected)
  })
})
