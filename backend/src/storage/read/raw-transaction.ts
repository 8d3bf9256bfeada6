import type { RawTransaction } from '../../graph/graph-store.js'
import type { TransactionRecord } from '../../graph/records.js'
import type { BlobChunks } from '../rows/blob-chunks.js'
import { CHUNK_BYTES, hashColumn } from '../rows/columns.js'

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
        if (bytes === undefined)
          throw new Error(`a chunk of the transaction ${txid} is missing from the store`)
        yield { at: position * CHUNK_BYTES, bytes }
      }
    },
  }
}
