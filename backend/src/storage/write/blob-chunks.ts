import { CHUNK_BYTES, hexOf, ROWS_A_STATEMENT } from '../rows/columns.js'
import type { Row } from '../rows/record-rows.js'
import type { TransactionTables } from './graph-tables.js'

/** So that one statement stays far below what a server takes in one packet. */
const BYTES_A_STATEMENT = 4 * 1024 * 1024

/** `owner` is 32 bytes: the body's hash, or what stands for it. */
interface Body {
  owner: Buffer
  bytes: Uint8Array
}

/** Writes bodies in pieces; one that is there stays as it is. */
export async function writeChunks(tables: TransactionTables, bodies: Body[]): Promise<void> {
  const wanted = new Map(bodies.map((body) => [hexOf(body.owner), body]))
  for (const owner of await tables.held([...wanted.keys()])) wanted.delete(owner)
  await insertChunks(tables, wanted.values())
}

/** Writes bodies in pieces that are not there; each once. */
export async function insertChunks(tables: TransactionTables, bodies: Iterable<Body>): Promise<void> {
  let rows: Row[] = []
  let size = 0
  const flush = async (): Promise<void> => {
    await tables.insertNew('graph_pieces', rows)
    rows = []
    size = 0
  }
  for (const { owner, bytes } of bodies) {
    // An empty body has one empty piece, so that it is told from a body that is not there.
    for (let at = 0; at === 0 || at < bytes.length; at += CHUNK_BYTES) {
      const piece = bytes.subarray(at, at + CHUNK_BYTES)
      rows.push({ owner, position: at / CHUNK_BYTES, bytes: Buffer.from(piece) })
      size += piece.length
      if (size >= BYTES_A_STATEMENT || rows.length >= ROWS_A_STATEMENT) await flush()
    }
  }
  await flush()
}
