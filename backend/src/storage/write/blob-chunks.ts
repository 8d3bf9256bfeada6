import { CHUNK_BYTES } from '../../graph/graph-store.js'
import { checksumOf } from '../read/read-blobs.js'
import { hexOf, ROWS_A_STATEMENT } from '../rows/columns.js'
import type { RecordRow } from '../rows/record-rows.js'
import type { TransactionTables } from './graph-tables.js'

/** Where chunks are written. */
type ChunkTables = Pick<TransactionTables, 'held' | 'insertNew'>

/** Far below the size of a packet that servers accept. */
const BYTES_A_STATEMENT = 4 * 1024 * 1024

/** See `BlobChunks` for `owner`. */
interface Blob {
  owner: Buffer
  bytes: Uint8Array
}

/** Writes blobs in chunks; stored ones stay as they are. */
export async function writeChunks(tables: ChunkTables, blobs: Blob[]): Promise<void> {
  const wanted = new Map(blobs.map((blob) => [hexOf(blob.owner), blob]))
  for (const owner of await tables.held([...wanted.keys()])) wanted.delete(owner)
  await insertChunks(tables, wanted.values())
}

/** Writes distinct blobs that are not stored yet. */
export async function insertChunks(tables: ChunkTables, blobs: Iterable<Blob>): Promise<void> {
  let rows: RecordRow[] = []
  let size = 0
  const flush = async (): Promise<void> => {
    await tables.insertNew('graph_pieces', rows)
    rows = []
    size = 0
  }
  for (const { owner, bytes } of blobs) {
    // An empty blob has one empty chunk, which distinguishes it from a missing one.
    for (let at = 0; at === 0 || at < bytes.length; at += CHUNK_BYTES) {
      const chunk = bytes.subarray(at, at + CHUNK_BYTES)
      const checksum = checksumOf(chunk, { owner, length: bytes.length })
      rows.push({ owner, position: at / CHUNK_BYTES, bytes: Buffer.from(chunk), checksum })
      size += chunk.length
      if (size >= BYTES_A_STATEMENT || rows.length >= ROWS_A_STATEMENT) await flush()
    }
  }
  await flush()
}
