import {
  type ByteRange,
  type ContentReader,
  type RawTransaction,
  SHORT_BODY,
} from '../../graph/graph-store.js'
import type { TransactionRecord } from '../../graph/records.js'
import { CHUNK_BYTES, hashColumn } from '../rows/columns.js'

/** Blobs in chunks of `CHUNK_BYTES`: bodies, raw transactions and MAP. */
export interface BlobChunks {
  /**
   * A chunk by its position, counted from 0; undefined if there is none.
   *
   * @param owner 32 bytes: the hash of a body, a txid, or a hash that identifies something else.
   */
  chunk(owner: Buffer, position: number): Promise<Uint8Array | undefined>
}

/** The bodies of a store, on any engine. */
export function contentIn(blobs: BlobChunks): ContentReader {
  return {
    async shortBody(sha256) {
      const body = await blobs.chunk(hashColumn(sha256), 0)
      return body !== undefined && body.length <= SHORT_BODY ? body : undefined
    },
    chunks: (sha256, range) => contentChunks(blobs, sha256, range),
  }
}

async function* contentChunks(
  blobs: BlobChunks,
  sha256: string,
  range?: ByteRange,
): AsyncGenerator<Uint8Array> {
  const from = range?.from ?? 0
  const end = from + (range?.length ?? Number.POSITIVE_INFINITY)
  const owner = hashColumn(sha256)
  for (let position = Math.floor(from / CHUNK_BYTES); ; position++) {
    const start = position * CHUNK_BYTES
    if (start >= end) return
    const chunk = await blobs.chunk(owner, position)
    if (chunk === undefined) return
    yield chunk.subarray(Math.max(from - start, 0), end - start)
  }
}

/**
 * A transaction of which only the first chunk has been read; see `TransactionsReader.raw`.
 *
 * @param options.last Reads the position and length of the last chunk, if the first is full.
 */
export async function rawTransactionOf(options: {
  txid: string
  proof: TransactionRecord['proof']
  first: Uint8Array
  last: () => Promise<{ position: number; length: number } | undefined>
  blobs: BlobChunks
}): Promise<RawTransaction> {
  const { txid, proof, first, blobs } = options
  // Only the last chunk is shorter than the others.
  const last = first.length < CHUNK_BYTES ? undefined : await options.last()
  const length = last === undefined ? first.length : last.position * CHUNK_BYTES + last.length
  const owner = hashColumn(txid)
  return {
    txid,
    ...(proof && { proof }),
    length,
    async *chunks(from = 0) {
      for (let position = Math.floor(from / CHUNK_BYTES); position * CHUNK_BYTES < length; position++) {
        const bytes = position === 0 ? first : await blobs.chunk(owner, position)
        if (bytes === undefined)
          throw new Error(`chunk ${position} of transaction ${txid} is not in the store`)
        yield { at: position * CHUNK_BYTES, bytes }
      }
    },
  }
}
