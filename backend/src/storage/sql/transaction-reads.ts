import type { TransactionRecord } from '../../graph/records.js'
import { joinBytes } from '../../protocol/bytes.js'
import { bytesOf, hashColumn, hexOf } from '../columns.js'
import type { SqlReader } from './sql-reader.js'

/** A transaction, put together from its pieces; undefined where the store does not hold it. */
export async function transactionRecord(
  reader: SqlReader,
  txid: string,
): Promise<TransactionRecord | undefined> {
  const rows = await reader.all(
    `select merkle_path, height, merkle_root, bytes from graph_transactions as transactions
     join graph_pieces as pieces on pieces.owner = transactions.txid
     where transactions.txid = ? order by position`,
    [hashColumn(txid)],
  )
  const [first] = rows
  if (first === undefined) return undefined
  const raw = rows.length === 1 ? bytesOf(first.bytes) : joinBytes(rows.map(({ bytes }) => bytesOf(bytes)))
  const proof = first.merkle_path && {
    merklePath: bytesOf(first.merkle_path),
    height: Number(first.height),
    root: hexOf(first.merkle_root),
  }
  return { txid, raw, ...(proof && { proof }) }
}
