import type { Db } from 'mongodb'
import { placeOf } from '../rebuild/checkpoint.js'
import type { TransactionLogRows } from '../rebuild/transaction-log.js'
import { countIn, type Documents, type Filter } from './documents.js'
import { transactionRecord } from './transactions.js'

function behind(place: string): Filter {
  const { arrival, txid } = placeOf(place)
  return { arrival: { $gte: arrival }, $or: [{ arrival: { $gt: arrival } }, { txid: { $gt: txid } }] }
}

/** The transactions of a database in the order in which they came. */
export function transactionLogIn(documents: Documents): TransactionLogRows {
  return {
    page: (place, limit) =>
      documents.all('graph_transactions', behind(place), {
        sort: { arrival: 1, txid: 1 },
        limit,
        fields: ['txid', 'arrival'],
      }),
    admissions: (txids) => documents.all('graph_admissions', { txid: { $in: txids } }),
    transaction: (txid) => transactionRecord(documents, txid),
  }
}

export async function transactionsLeft(db: Db, after: string): Promise<number> {
  return await countIn(db, 'graph_transactions', behind(after))
}
