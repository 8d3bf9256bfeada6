import { recordOf } from '../protocol/block.js'
import type { FakeTransaction } from '../protocol/fake-chain.js'
import type { DerivingStore } from './engine.js'

// Transactions that arrive one by one at a store that derives admissions, and the rows that come of them.

/** A transaction, and the height of the block that proves it; undefined if none does. */
export interface Arrival {
  transaction: FakeTransaction
  height?: number | undefined
}

/** Records a transaction as if it was submitted, with others that came along. */
export async function record(
  { store }: Pick<DerivingStore, 'store'>,
  arrival: Arrival,
  ...along: Arrival[]
): Promise<void> {
  const all = [arrival, ...along]
  const transactions = all.map(({ transaction, height }) => recordOf(transaction, height))
  await store.record(transactions, { subjects: [arrival.transaction.txid] })
}

/** The rows, except for when each was written. */
export async function rowsOf(opened: Pick<DerivingStore, 'rows'>): Promise<Record<string, string[]>> {
  const { graph_admissions = [], ...rows } = await opened.rows()
  return {
    ...rows,
    graph_admissions: graph_admissions.map((row) => row.replace(/"score":\d+/, '')).sort(),
  }
}
