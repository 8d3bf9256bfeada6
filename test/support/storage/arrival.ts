import { graphRecords } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { spendsBy } from '../../../backend/src/graph/transaction-records.js'
import { IndexMaintenance } from '../../../src/server/store/index-maintenance.js'
import { recordOf } from '../protocol/block.js'
import type { FakeTransaction } from '../protocol/fake-chain.js'
import { SILENT } from '../server/test-server.js'
import type { DerivingStore, OpenedStore } from './engine.js'

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
  const spends = transactions.flatMap((each) => spendsBy(viewOf(each)))
  await store.record(graphRecords({ transactions, spends }), { subjects: [arrival.transaction.txid] })
}

export async function workOff({ store }: Pick<DerivingStore, 'store'>): Promise<void> {
  while (await store.backlog.workOff());
}

/** Rebuilds the index of a store on tables from its transactions. */
export async function rebuild({
  store,
  maintenance,
}: Pick<OpenedStore, 'store' | 'maintenance'>): Promise<void> {
  const runLocked = <Result>(work: () => Promise<Result>): Promise<Result> => work()
  const index = new IndexMaintenance({ store: maintenance, graph: store, runLocked, logger: SILENT })
  await maintenance.setRebuildCheckpoint({ state: 'needed' })
  await index.open()
  await index.run()
}

/**
 * The rows, except for when each was written, and for what the outputs of inactive transactions received: that is resolved when
 * these become active.
 */
export async function rowsOf(opened: Pick<DerivingStore, 'rows'>): Promise<Record<string, string[]>> {
  const { graph_settings: _, ...rows } = await opened.rows()
  const { graph_admissions = [], graph_silent_facts = [] } = rows
  return {
    ...rows,
    graph_admissions: graph_admissions.map((row) => row.replace(/"score":\d+/, '')).sort(),
    graph_silent_facts: graph_silent_facts.map(withoutReceived).sort(),
  }
}

function withoutReceived(row: string): string {
  const { body, ...columns } = JSON.parse(row)
  const { previous: _, unsettled: __, ...fact } = JSON.parse(Buffer.from(body, 'hex').toString('utf8'))
  return JSON.stringify({ ...columns, fact: Object.entries(fact).sort() })
}
