import { isListed, recencyOf, type StoreCounts } from '../../graph/listings.js'
import type { NameRecord, OutputRecord } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { COUNTS, storedCounts } from '../read/listings.js'
import {
  groupBy,
  hashColumn,
  hexOf,
  inParts,
  numberIn,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import { anyOf, type RowReader, type RowWriter } from '../rows/rows.js'

/** What a write changes in the lists: how many rows there are, and which are to be sorted again. */
export class ListingChanges {
  private readonly added: StoreCounts = { names: 0, inscriptions: 0, transactions: 0 }
  private readonly moved = new Set<string>()

  constructor(private readonly rows: RowWriter) {}

  /** @param counts May be negative. */
  count(counts: Partial<StoreCounts>): void {
    for (const [kind, number] of Object.entries(counts)) this.added[kind as keyof StoreCounts] += number
  }

  /** Notes transactions whose proof or insertion order has changed. */
  move(txids: Iterable<string>): void {
    for (const txid of txids) this.moved.add(txid)
  }

  /** Writes what was noted, after all other rows are written. */
  async write(): Promise<void> {
    const { rows, added } = this
    const recencies = await recenciesOf(rows, [...this.moved])
    this.moved.clear()
    await sortAgain(rows, recencies)
    if (Object.values(added).every((number) => number === 0)) return
    const before = await storedCounts(rows)
    const after = Object.fromEntries(
      Object.entries(before).map(([kind, number]) => [kind, number + added[kind as keyof StoreCounts]]),
    )
    this.count({ names: -added.names, inscriptions: -added.inscriptions, transactions: -added.transactions })
    await rows.put('graph_settings', { ...COUNTS, value: JSON.stringify(after) })
  }
}

/** The recency of transactions, by txid. */
export async function recenciesOf(rows: RowReader, txids: string[]): Promise<Map<string, number>> {
  const found = await inParts(unique(txids, String), (part) =>
    rows.all('graph_transactions', { txid: anyOf(part) }, { fields: ['txid', 'height', 'arrival'] }),
  )
  return new Map(
    found.map(({ txid, height, arrival }) => [
      hexOf(txid),
      recencyOf({ height: numberIn(height), insertionOrder: Number(arrival) }),
    ]),
  )
}

async function sortAgain(rows: RowWriter, recencies: ReadonlyMap<string, number>): Promise<void> {
  for (const table of ['graph_names', 'graph_outputs'] as const) {
    const found = await inParts([...recencies.keys()], (part) =>
      rows.all(table, { txid: anyOf(part), recency: { $ne: null } }, { fields: ['txid', 'vout', 'recency'] }),
    )
    for (const [txid, own] of groupBy(found, (row) => hexOf(row.txid))) {
      const recency = recencies.get(txid)
      const stale = own.filter((row) => Number(row.recency) !== recency).map(({ vout }) => Number(vout))
      for (const part of parts(stale, ROWS_A_STATEMENT)) {
        await rows.update(table, { txid: hashColumn(txid), vout: { $in: part } }, { recency })
        await yieldBetweenStatements()
      }
    }
  }
}

/** The statements of a write that lists take. */
interface ListedTables {
  transactions: {
    readonly listings: ListingChanges
    recenciesOf(txids: string[]): Promise<Map<string, number>>
  }
  outputs: {
    valuesAmong(outpoints: Outpoint[]): Promise<unknown[]>
    namesAmong(outpoints: Outpoint[]): Promise<unknown[]>
  }
}

/** The recency of new outputs that are listed, by their txid; counts those that are not stored. */
export async function listOutputs(
  { transactions, outputs: tables }: ListedTables,
  outputs: OutputRecord[],
): Promise<Map<string, number>> {
  const listed = unique(outputs.filter(isListed), ({ outpoint }) => formatOutpoint(outpoint))
  if (listed.length === 0) return new Map()
  const stored = await tables.valuesAmong(listed.map(({ outpoint }) => outpoint))
  transactions.listings.count({ inscriptions: listed.length - stored.length })
  return await transactions.recenciesOf(listed.map(({ outpoint }) => outpoint.txid))
}

/** The same of new names. */
export async function listNames(
  { transactions, outputs }: ListedTables,
  names: NameRecord[],
): Promise<Map<string, number>> {
  if (names.length === 0) return new Map()
  const outpoints = unique(
    names.map(({ outpoint }) => outpoint),
    formatOutpoint,
  )
  const stored = await outputs.namesAmong(outpoints)
  transactions.listings.count({ names: outpoints.length - stored.length })
  return await transactions.recenciesOf(outpoints.map(({ txid }) => txid))
}
