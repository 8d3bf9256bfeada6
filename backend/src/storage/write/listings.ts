import type { Attribute } from '../../graph/attributes.js'
import { type Dependency, dependency } from '../../graph/dependencies.js'
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
  /** What answers may follow from that has changed. */
  readonly outdated = new Set<Dependency>()

  constructor(private readonly rows: RowWriter) {}

  /** @param counts May be negative. */
  count({ names = 0, inscriptions = 0, transactions = 0 }: Partial<StoreCounts>): void {
    this.added.names += names
    this.added.inscriptions += inscriptions
    this.added.transactions += transactions
    if (names !== 0) this.outdated.add(dependency.names)
    if (inscriptions !== 0) this.outdated.add(dependency.inscriptions)
  }

  /** Notes rows by which ordinals are found. */
  find(attributes: Iterable<Attribute>): void {
    for (const each of attributes) if (each.kind === 'parent') this.outdated.add(dependency.children(each))
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
    for (const each of await sortAgain(rows, recencies)) this.outdated.add(each)
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

/** Returns which lists have changed. */
async function sortAgain(
  rows: RowWriter,
  recencies: ReadonlyMap<string, number>,
): Promise<ReadonlySet<Dependency>> {
  const changed = new Set<Dependency>()
  for (const [table, list] of LISTS) {
    const found = await inParts([...recencies.keys()], (part) =>
      rows.all(table, { txid: anyOf(part), recency: { $ne: null } }, { fields: ['txid', 'vout', 'recency'] }),
    )
    for (const [txid, own] of groupBy(found, (row) => hexOf(row.txid))) {
      const recency = recencies.get(txid)
      const stale = own.filter((row) => Number(row.recency) !== recency).map(({ vout }) => Number(vout))
      if (stale.length > 0) changed.add(list)
      for (const part of parts(stale, ROWS_A_STATEMENT)) {
        await rows.update(table, { txid: hashColumn(txid), vout: { $in: part } }, { recency })
        await yieldBetweenStatements()
      }
    }
  }
  return changed
}

const LISTS = [
  ['graph_names', dependency.names],
  ['graph_outputs', dependency.inscriptions],
] as const

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
  for (const { name } of names) transactions.listings.outdated.add(dependency.name(name))
  const outpoints = unique(
    names.map(({ outpoint }) => outpoint),
    formatOutpoint,
  )
  const stored = await outputs.namesAmong(outpoints)
  transactions.listings.count({ names: outpoints.length - stored.length })
  return await transactions.recenciesOf(outpoints.map(({ txid }) => txid))
}
