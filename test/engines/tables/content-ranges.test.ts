import { type ByteRange, CHUNK_BYTES } from '../../../backend/src/graph/graph-store.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import type { OpenedStore } from '../../support/storage/engine.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

const LARGEST = 4 * CHUNK_BYTES
const BODY = Uint8Array.from({ length: LARGEST }, (_, at) => at * 7 + (at >> 8) * 3)
const HASH = sha256(BODY).toString('hex')

onEachTableEngine(({ openStore, closeStores }) => {
  let opened: OpenedStore
  beforeAll(async () => {
    opened = await openStore()
    const content = { sha256: HASH, contentType: 'text/plain', length: LARGEST }
    const outputs = [{ outpoint: { txid: 'ab'.repeat(32), vout: 0 }, satoshis: 1, content }]
    await opened.store.record(graphRecords({ outputs, contents: [{ sha256: HASH, bytes: BODY }] }))
  })
  afterAll(closeStores)

  test.each<[string, ByteRange, number]>([
    ['one byte', { from: 2 * CHUNK_BYTES + 5, length: 1 }, 1],
    ['the last byte', { from: LARGEST - 1, length: 1 }, 1],
    ['one chunk exactly', { from: CHUNK_BYTES, length: CHUNK_BYTES }, 1],
    ['the two bytes at a border', { from: CHUNK_BYTES - 1, length: 2 }, 2],
    ['a chunk and a byte', { from: CHUNK_BYTES, length: CHUNK_BYTES + 1 }, 2],
    ['all of it', { from: 0, length: LARGEST }, 4],
  ])('%s of a large body is read from the chunks that hold it, and no others', async (_, range, expected) => {
    const { store, reads } = opened
    const before = reads()
    const chunks: Uint8Array[] = []
    for await (const chunk of store.content.chunks(HASH, range)) chunks.push(chunk)
    expect(Buffer.concat(chunks).equals(BODY.subarray(range.from, range.from + range.length))).toBe(true)
    expect(reads() - before).toBe(expected)
  })
})
