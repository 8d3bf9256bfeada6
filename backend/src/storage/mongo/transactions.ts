import type { RawTransaction, TransactionsReader } from '../../graph/graph-store.js'
import type { TransactionRecord } from '../../graph/records.js'
import { rawTransactionOf } from '../read/raw-transaction.js'
import { hashColumn, hexOf } from '../rows/columns.js'
import { chunksIn, readChunks } from './blob-chunks.js'
import { chunksOf } from './collections.js'
import type { Doc, Documents } from './documents.js'
import { heightIn, isStored, spenderOf, winnerIn } from './transaction-status.js'

/** The transactions of a store. @param derives Whether the store derives admissions by itself. */
export function transactionsIn(documents: Documents, derives: () => boolean): TransactionsReader {
  return {
    get: (txid) => transactionRecord(documents, txid),
    raw: (txid) => rawTransaction(documents, txid),
    has: (txid) => isStored(documents, txid),
    heightOf: (txid) => heightIn(documents, txid),
    spenderOf: (outpoint) => spenderOf(documents, outpoint),
    winnerOver: (txid) => winnerIn(documents, txid, derives()),
  }
}

/** A transaction, put together from its pieces; undefined where the store does not hold it. */
export async function transactionRecord(
  documents: Documents,
  txid: string,
): Promise<TransactionRecord | undefined> {
  const id = hashColumn(txid)
  const [doc, raw] = await Promise.all([
    documents.first('graph_transactions', { _id: id }, { fields: ['merkle_path', 'height', 'merkle_root'] }),
    readChunks(documents, id),
  ])
  if (doc === undefined || raw === undefined) return undefined
  const proof = proofOf(doc)
  return { txid, raw, ...(proof && { proof }) }
}

/** See `TransactionsReader.raw`. */
export async function rawTransaction(
  documents: Documents,
  txid: string,
): Promise<RawTransaction | undefined> {
  const id = hashColumn(txid)
  const pieces = chunksIn(documents)
  const [doc, first] = await Promise.all([
    documents.first('graph_transactions', { _id: id }, { fields: ['merkle_path', 'height', 'merkle_root'] }),
    pieces.piece(id, 0),
  ])
  if (doc === undefined || first === undefined) return undefined
  return await rawTransactionOf({
    txid,
    proof: proofOf(doc),
    first,
    async last() {
      const last = await documents.first('graph_pieces', chunksOf(id), {
        sort: { _id: -1 },
        fields: ['position', 'bytes'],
      })
      return last && { position: last.position, length: last.bytes.length }
    },
    pieces,
  })
}

function proofOf({ merkle_path, height, merkle_root }: Doc): TransactionRecord['proof'] {
  if (!merkle_path) return undefined
  return { merklePath: merkle_path, height, root: hexOf(merkle_root) }
}
