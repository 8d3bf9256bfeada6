import { type ByteRange, SHORT_BODY } from '../../graph/graph-store.js'
import { bytesOf, hashColumn, PIECE_BYTES } from '../columns.js'
import type { SqlReader } from './sql-reader.js'

/** See `ContentReader.shortBody`. */
export async function shortBody(reader: SqlReader, sha256: string): Promise<Uint8Array | undefined> {
  const row = await reader.first('select bytes from graph_pieces where owner = ? and position = 0', [
    hashColumn(sha256),
  ])
  const body = row && bytesOf(row.bytes)
  return body !== undefined && body.length <= SHORT_BODY ? body : undefined
}

/** See `ContentReader.contentPieces`. */
export async function* contentPieces(
  reader: SqlReader,
  sha256: string,
  range?: ByteRange,
): AsyncGenerator<Uint8Array> {
  const from = range?.from ?? 0
  const end = from + (range?.length ?? Number.POSITIVE_INFINITY)
  const owner = hashColumn(sha256)
  for (let position = Math.floor(from / PIECE_BYTES); ; position++) {
    const start = position * PIECE_BYTES
    if (start >= end) return
    const row = await reader.first('select bytes from graph_pieces where owner = ? and position = ?', [
      owner,
      position,
    ])
    if (row === undefined) return
    yield bytesOf(row.bytes).subarray(Math.max(from - start, 0), end - start)
  }
}
