import { type ByteRange, type ContentReader, SHORT_BODY } from '../../graph/graph-store.js'
import type { BlobChunks } from '../rows/blob-chunks.js'
import { CHUNK_BYTES, hashColumn } from '../rows/columns.js'

/** The bodies of a store, on any engine. */
export function contentIn(chunks: BlobChunks): ContentReader {
  return {
    shortBody: (sha256) => shortBody(chunks, sha256),
    chunks: (sha256, range) => contentChunks(chunks, sha256, range),
  }
}

async function shortBody(pieces: BlobChunks, sha256: string): Promise<Uint8Array | undefined> {
  const body = await pieces.piece(hashColumn(sha256), 0)
  return body !== undefined && body.length <= SHORT_BODY ? body : undefined
}

async function* contentChunks(
  pieces: BlobChunks,
  sha256: string,
  range?: ByteRange,
): AsyncGenerator<Uint8Array> {
  const from = range?.from ?? 0
  const end = from + (range?.length ?? Number.POSITIVE_INFINITY)
  const owner = hashColumn(sha256)
  for (let position = Math.floor(from / CHUNK_BYTES); ; position++) {
    const start = position * CHUNK_BYTES
    if (start >= end) return
    const piece = await pieces.piece(owner, position)
    if (piece === undefined) return
    yield piece.subarray(Math.max(from - start, 0), end - start)
  }
}
