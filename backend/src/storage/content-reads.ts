import { type ByteRange, SHORT_BODY } from '../graph/graph-store.js'
import { hashColumn, PIECE_BYTES } from './columns.js'
import type { Pieces } from './pieces.js'

/** See `ContentReader.shortBody`. */
export async function shortBody(pieces: Pieces, sha256: string): Promise<Uint8Array | undefined> {
  const body = await pieces.piece(hashColumn(sha256), 0)
  return body !== undefined && body.length <= SHORT_BODY ? body : undefined
}

/** See `ContentReader.contentPieces`. */
export async function* contentPieces(
  pieces: Pieces,
  sha256: string,
  range?: ByteRange,
): AsyncGenerator<Uint8Array> {
  const from = range?.from ?? 0
  const end = from + (range?.length ?? Number.POSITIVE_INFINITY)
  const owner = hashColumn(sha256)
  for (let position = Math.floor(from / PIECE_BYTES); ; position++) {
    const start = position * PIECE_BYTES
    if (start >= end) return
    const piece = await pieces.piece(owner, position)
    if (piece === undefined) return
    yield piece.subarray(Math.max(from - start, 0), end - start)
  }
}
