import { readTransaction, type TransactionView } from '../protocol/transaction.js'
import type { TransactionReader } from './graph-store.js'

/** A transaction of the store, read; undefined where there is no store or it does not hold it. */
export async function storedTransaction(
  txid: string,
  store: TransactionReader | undefined,
): Promise<TransactionView | undefined> {
  const record = await store?.transaction(txid)
  return record && readTransaction(record.raw, { txid })
}
