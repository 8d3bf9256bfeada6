import {
  type ByteRange,
  type ContentReader,
  type RawTransaction,
  SHORT_BODY,
} from '../../graph/graph-store.js'
import type { TransactionRecord } from '../../graph/records.js'
import { CHUNK_BYTES, hashColumn } from '../rows/columns.js'

/** Where bodies, raw transactions and MAP stand, in pieces of `CHUNK_BYTES`. */
export interface BlobChunks {
  /** One of them, counted from 0; undefined where there is none. `owner` is 32 bytes: the body's hash, or what stands for it. */
  piece(owner: Buffer, position: number): Promise<Uint8Array | undefined>
}

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

/**
 * A transaction of which only the first piece was read; see `RawTransactionReader`.
 *
 * @param options.last The last of several pieces, where the first is full.
 */
export async function rawTransactionOf(options: {
  txid: string
  proof: TransactionRecord['proof']
  first: Uint8Array
  last: () => Promise<{ position: number; length: number } | undefined>
  pieces: BlobChunks
}): Promise<RawTransaction> {
  const { txid, proof, first, pieces } = options
  // Only the last is shorter than the others.
  const last = first.length < CHUNK_BYTES ? undefined : await options.last()
  const length = last === undefined ? first.length : last.position * CHUNK_BYTES + last.length
  const owner = hashColumn(txid)
  return {
    txid,
    ...(proof && { proof }),
    length,
    async *chunks(from = 0) {
      for (let position = Math.floor(from / CHUNK_BYTES); position * CHUNK_BYTES < length; position++) {
        const bytes = position === 0 ? first : await pieces.piece(owner, position)
        if (bytes === undefined) throw new Error(`a piece of the transaction ${txid} is not in the store`)
        yield { at: position * CHUNK_BYTES, bytes }
      }
    },
  }
}
