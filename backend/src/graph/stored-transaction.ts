import { readTransaction, type TransactionView } from '../protocol/transaction.js'
import type { TransactionSource } from './graph-store.js'

const views = new WeakMap<Uint8Array, TransactionView>()

/** A raw transaction, read once for as long as somebody holds its bytes. */
export function viewOf({ txid, raw }: { txid: string; raw: Uint8Array }): TransactionView {
  const known = views.get(raw)
  if (known !== undefined) return known
  const view = readTransaction(raw, { txid })
  views.set(raw, view)
  return view
}

/** Makes {@link viewOf} answer with a transaction that was read already. */
export function rememberView(view: TransactionView): void {
  views.set(view.raw, view)
}

/** A transaction of the store, read; undefined where there is no store or it does not hold it. */
export async function storedTransaction(
  txid: string,
  store: TransactionSource | undefined,
): Promise<TransactionView | undefined> {
  const record = await store?.get(txid)
  return record && viewOf({ txid, raw: record.raw })
}
