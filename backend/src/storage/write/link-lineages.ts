import { holdsOrdinal } from '../../graph/ordinals-records.js'
import type { NameRecord, OutputRecord } from '../../graph/records.js'
import { storedTransaction, viewOf } from '../../graph/stored-transaction.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { outputOf, type TransactionView } from '../../protocol/transaction.js'
import type { Change, Place } from '../read/lineages.js'
import { groupBy, outpointOf, outpointPair, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { outputRow } from '../rows/record-rows.js'
import { Effort } from './backlog.js'
import type { GraphTables, Head } from './graph-tables.js'
import { storedFlow } from './resolve-predecessors.js'
import { rest } from './rest.js'

/**
 * Every output of the graph stands in a lineage: the unbroken run of 1-sat coins that is known to lead to it (BRC-159),
 * called by its first output, and at a step of it. The lineages are kept when facts come, in whatever order, so that
 * no read has to follow an ordinal from coin to coin.
 *
 * An output of which the coin that it received is not here starts as a lineage of its own. When that coin comes, its lineage
 * goes on that coin's; when the origin of a name is, its lineage starts there whatever it received (protocol 5).
 *
 * @param told.gone Outputs that are not here any more: until it is decided that what received them goes, too, it stands alone.
 * @returns The lineages that are not as they were, each once.
 */
export async function linkLineages(
  tables: GraphTables,
  told: { outputs: Outpoint[]; names: NameRecord[]; gone: Outpoint[] },
): Promise<Change[]> {
  const changes = new Changes()
  const names = told.names.map(({ outpoint }) => outpoint)
  const starting = [...names, ...(await tables.outputs.receiversOf(told.gone))]
  for (const part of parts(starting, ROWS_A_STATEMENT)) {
    for (const outpoint of await tables.outputs.furtherAmong(part)) await startAt(tables, outpoint, changes)
    await rest()
  }
  const outputs = unique(told.outputs, formatOutpoint)
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const found = await tables.outputs.headsAmong(part)
    // In the order in which they were told, so that what came parents first is moved step by step.
    const place = new Map(part.map((outpoint, at) => [formatOutpoint(outpoint), at]))
    const toldAt = (head: Head): number => place.get(formatOutpoint(head.outpoint)) ?? 0
    for (const head of found.sort((a, b) => toldAt(a) - toldAt(b))) await goOn(tables, head, changes)
    for (const head of await tables.outputs.headsBehind(part)) await goOn(tables, head, changes)
    await rest()
  }
  for (const change of await tables.outputs.stepsOf([...outputs, ...starting, ...changes.moved]))
    changes.add(change)
  await rest()
  return changes.all
}

/**
 * Writes outputs. Most received the last coin of a lineage that is here, and are written where they go on it.
 *
 * @param names Names of which the origins are about to be written: their lineages start there, whatever they received.
 */
export async function writeOutputs(
  tables: GraphTables,
  outputs: OutputRecord[],
  names: NameRecord[],
): Promise<void> {
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const further = part.filter(({ previous }) => previous !== undefined)
    const known = await tables.outputs.namesAmong(further.map(({ outpoint }) => outpoint))
    const starting = new Set([...names, ...known].map(({ outpoint }) => formatOutpoint(outpoint)))
    const received = await tables.outputs.stepsOf(further.flatMap(({ previous }) => previous ?? []))
    const places = new Map(received.map((place) => [formatOutpoint(place.outpoint), place]))
    const rows = part.map((output) => {
      const { outpoint, previous } = output
      const place =
        previous && !starting.has(formatOutpoint(outpoint)) && places.get(formatOutpoint(previous))
      return place
        ? outputRow(output, { lineage: outpointPair(place.lineage), step: place.from + 1 })
        : outputRow(output)
    })
    await tables.transactions.insertNew('graph_outputs', rows)
  }
}

/** The lineages that one write has changed, each once. */
class Changes {
  /** Outputs with which a lineage went over into another. */
  readonly moved: Outpoint[] = []
  private readonly byLineage = new Map<string, Change>()

  get all(): Change[] {
    return [...this.byLineage.values()]
  }

  add(change: Change): void {
    const key = formatOutpoint(change.lineage)
    const known = this.byLineage.get(key)
    if (known === undefined || change.from < known.from) this.byLineage.set(key, change)
  }
}

/** Lets a lineage go on that of the coin which its first output received. */
async function goOn(tables: GraphTables, { outpoint, previous }: Head, changes: Changes): Promise<void> {
  await rest()
  const { lineage: to, step } = await placeOf(tables, previous)
  // Nothing of this lineage stays; and from this output on, the other one has all that it had.
  changes.add({ lineage: outpoint, from: 0 })
  changes.moved.push(outpoint)
  await tables.outputs.moveSteps({ lineage: outpointPair(outpoint), from: 0, to, further: step + 1 })
}

/** Lets a lineage start at an output that stands further on in another, from there on. */
async function startAt(tables: GraphTables, outpoint: Outpoint, changes: Changes): Promise<void> {
  const { lineage, step } = await placeOf(tables, outpoint)
  const [txid, vout] = lineage
  changes.add({ lineage: outpointOf({ txid, vout }), from: 0 })
  await tables.outputs.moveSteps({ lineage, from: step, to: outpointPair(outpoint), further: -step })
}

async function placeOf(tables: GraphTables, outpoint: Outpoint): Promise<Place> {
  const place = await tables.rows.placeOf(outpoint)
  if (place === undefined) throw new Error(`${formatOutpoint(outpoint)} is gone while its lineage is kept`)
  return place
}

/**
 * The origin of an ordinal is the first output of its lineage with content (BRC-159): coins of 1 satoshi without any may
 * stand before it. Those that are known are written as carriers, back to where the lineage starts or to a coin that is not
 * known, so that it shows whether anything is missing.
 *
 * @param told.outputs Outputs that are new, or of which it is known since what they received.
 * @param told.transactions Raw transactions that are new, by txid.
 * @param told.left Coins that earlier writes have left to be looked at.
 * @param told.limit About how many transactions are looked at; a large one counts for several.
 * @returns The carriers that were written, those first that stand first, so that a lineage grows at its end; and the coins
 * that are left to be looked at.
 */
export async function writeCarriers(
  tables: GraphTables,
  told: {
    outputs: Outpoint[]
    transactions: ReadonlyMap<string, Uint8Array>
    left: Outpoint[]
    limit: number
  },
): Promise<{ carriers: Outpoint[]; left: Outpoint[] }> {
  const { transactions } = told
  const written: Outpoint[] = []
  let wanted = [
    ...(await tables.outputs.receivedBy(told.outputs)),
    ...(await tables.outputs.missingBehind([...transactions.keys()])),
    ...told.left,
  ]
  const effort = new Effort(told.limit)
  while (wanted.length > 0 && !effort.isOver) {
    const carriers = await carriersAt(tables, unique(wanted, formatOutpoint), { transactions, effort })
    for (const part of parts(carriers, ROWS_A_STATEMENT))
      await tables.transactions.insertNew(
        'graph_outputs',
        part.map((output) => outputRow(output)),
      )
    written.push(...carriers.map(({ outpoint }) => outpoint))
    wanted = carriers.flatMap(({ previous }) => previous ?? [])
    await rest()
  }
  return { carriers: written.reverse(), left: wanted }
}

/** Those of the outpoints that are coins without content of known transactions, and are not here. */
async function carriersAt(
  tables: GraphTables,
  outpoints: Outpoint[],
  { transactions, effort }: { transactions: ReadonlyMap<string, Uint8Array>; effort: Effort },
): Promise<OutputRecord[]> {
  const here = new Set(
    (await tables.outputs.valuesAmong(outpoints)).map(({ outpoint }) => formatOutpoint(outpoint)),
  )
  const missing = outpoints.filter((outpoint) => !here.has(formatOutpoint(outpoint)))
  const txids = [...new Set(missing.map(({ txid }) => txid))]
  const held = await tables.transactions.held(txids.filter((txid) => !transactions.has(txid)))
  const silent = await tables.transactions.inactiveAmong(txids)
  const carriers: OutputRecord[] = []
  const byTransaction = groupBy(missing, ({ txid }) => txid)
  for (const [txid, coins] of byTransaction) {
    const raw = transactions.get(txid)
    // What is built on what does not count does not count either.
    if (silent.has(txid) || (raw === undefined && !held.has(txid))) continue
    const view = raw ? viewOf({ txid, raw }) : await storedTransaction(txid, tables.transactions)
    effort.add(view)
    if (view === undefined) continue
    carriers.push(...(await carriersIn(tables, view, coins)))
    await rest()
  }
  return carriers
}

async function carriersIn(
  tables: GraphTables,
  view: TransactionView,
  coins: Outpoint[],
): Promise<OutputRecord[]> {
  const { predecessors } = await storedFlow(tables.transactions, view)
  return coins.flatMap((outpoint): OutputRecord[] => {
    const output = outputOf(view, outpoint.vout)
    // One with content that is not here is none that this host takes: where the ordinal starts is not for it to say.
    if (output?.satoshis !== 1 || holdsOrdinal(output)) return []
    const predecessor = predecessors[outpoint.vout]
    const received = predecessor?.kind === 'input' ? view.inputs[predecessor.input] : undefined
    return [
      {
        outpoint,
        satoshis: 1,
        carrier: true,
        ...(received && { previous: { txid: received.txid, vout: received.vout } }),
        ...(predecessor?.kind === 'unknown' && { unsettled: true as const }),
      },
    ]
  })
}
