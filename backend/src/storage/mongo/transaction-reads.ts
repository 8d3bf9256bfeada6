import type { TransactionRecord } from '../../graph/records.js'
import { hashColumn, hexOf } from '../columns.js'
import type { Doc, Documents } from './documents.js'
import { readPieces } from './piece-reads.js'

/** A transaction, put together from its pieces; undefined where the store does not hold it. */
export async function transactionRecord(
  documents: Documents,
  txid: string,
): Promise<TransactionRecord | undefined> {
  const id = hashColumn(txid)
  const [doc, raw] = await Promise.all([
    documents.first('graph_transactions', { _id: id }, { fields: ['merkle_path', 'height', 'merkle_root'] }),
    readPieces(documents, id),
  ])
  if (doc === undefined || raw === undefined) return undefined
  const proof = proofOf(doc)
  return { txid, raw, ...(proof && { proof }) }
}

function proofOf({ merkle_path, height, merkle_root }: Doc): TransactionRecord['proof'] {
  if (!merkle_path) return undefined
  return { merklePath: merkle_path, height, root: hexOf(merkle_root) }
}
