import type { NameRecord, OutputRecord, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { readOutline, storedTransaction, viewOf } from '../../graph/stored-transaction.js'
import { type Flow, flowBy, holdsOrdinal } from '../../graph/transaction-records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { outputOf, type TransactionView } from '../../protocol/transaction.js'
import type { LineageChange, Place } from '../read/lineages.js'
import { groupBy, outpointOf, outpointPair, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { outputRow } from '../rows/record-rows.js'
import { Effort } from './backlog.js'
import type { GraphTables, Head, TransactionTables } from './graph-tables.js'

/**
 * Every output belongs to a lineage: the unbroken run of 1-sat coins that is known to lead to it (BRC-159), identified by its
 * first output, in which each output has a step. Lineages are updated on every write, in whatever order transactions arrive,
 * so that no read has to follow an ordinal from coin to coin.
 *
 * An output starts a lineage of its own while the coin that it received is not stored. When that coin arrives, its lineage
 * continues with the output's. At the origin of a name, a lineage starts whatever the output received (protocol 5).
 *
 * @param written.gone Outputs that were removed: those that received them start lineages of their own until they are
 * removed, too.
 * @returns The changed lineages, each once.
 */
export async function linkLineages(
  tables: GraphTables,
  written: { outputs: Outpoint[]; names: NameRecord[]; gone: Outpoint[] },
): Promise<LineageChange[]> {
  const changes = new Changes()
  const names = written.names.map(({ outpoint }) => outpoint)
  const starting = [...names, ...(await tables.outputs.receiversOf(written.gone))]
  for (const part of parts(starting, ROWS_A_STATEMENT)) {
    for (const outpoint of await tables.outputs.furtherAmong(part))
      await startLineage(tables, outpoint, changes)
    await yieldBetweenStatements()
  }
  const outputs = unique(written.outputs, formatOutpoint)
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const found = await tables.outputs.headsAmong(part)
    // In the order of the records, so that parents come first and each lineage grows at its end.
    const place = new Map(part.map((outpoint, at) => [formatOutpoint(outpoint), at]))
    const placeOfHead = (head: Head): number => place.get(formatOutpoint(head.outpoint)) ?? 0
    for (const head of found.sort((a, b) => placeOfHead(a) - placeOfHead(b)))
      await continueLineage(tables, head, changes)
    for (const head of await tables.outputs.headsBehind(part)) await continueLineage(tables, head, changes)
    await yieldBetweenStatements()
  }
  for (const change of await tables.outputs.stepsOf([...outputs, ...starting, ...changes.moved]))
    changes.add(change)
  await yieldBetweenStatements()
  return changes.all
}

/**
 * Writes outputs. Most received the last coin of a stored lineage, and are written as its next step.
 *
 * @param names New names: lineages start at their origins, whatever these received.
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

/** The lineages that one write changes, each once. */
class Changes {
  /** The first outputs of lineages that became part of another. */
  readonly moved: Outpoint[] = []
  private readonly byLineage = new Map<string, LineageChange>()

  get all(): LineageChange[] {
    return [...this.byLineage.values()]
  }

  add(change: LineageChange): void {
    const key = formatOutpoint(change.lineage)
    const known = this.byLineage.get(key)
    if (known === undefined || change.from < known.from) this.byLineage.set(key, change)
  }
}

/** Appends a lineage to that of the coin which its first output received. */
async function continueLineage(
  tables: GraphTables,
  { outpoint, previous }: Head,
  changes: Changes,
): Promise<void> {
  await yieldBetweenStatements()
  const { lineage: to, step } = await placeOf(tables, previous)
  // Nothing of this lineage remains.
  changes.add({ lineage: outpoint, from: 0 })
  changes.moved.push(outpoint)
  await tables.outputs.moveSteps({ lineage: outpointPair(outpoint), from: 0, to, further: step + 1 })
}

/** Splits a lineage, so that a new one starts at an output. */
async function startLineage(tables: GraphTables, outpoint: Outpoint, changes: Changes): Promise<void> {
  const { lineage, step } = await placeOf(tables, outpoint)
  const [txid, vout] = lineage
  changes.add({ lineage: outpointOf({ txid, vout }), from: 0 })
  await tables.outputs.moveSteps({ lineage, from: step, to: outpointPair(outpoint), further: -step })
}

async function placeOf(tables: GraphTables, outpoint: Outpoint): Promise<Place> {
  const place = await tables.rows.placeOf(outpoint)
  if (place === undefined) throw new Error(`${formatOutpoint(outpoint)} is missing from its lineage`)
  return place
}

/**
 * Writes carriers. The origin of an ordinal is the first output of its lineage with content (BRC-159), and 1-sat coins
 * without content may precede it. Known ones are written as carriers, back to the start of the lineage or to an unknown coin,
 * so that the lineage shows whether anything is missing.
 *
 * @param written.outputs Outputs that are new, or whose predecessor was resolved.
 * @param written.transactions New raw transactions, by txid.
 * @param written.left Coins that earlier writes left to be looked at.
 * @param written.limit About how many transactions to look at; a large one counts for several.
 * @returns The carriers written, in the order of their lineages, and the coins that are left.
 */
export async function writeCarriers(
  tables: GraphTables,
  written: {
    outputs: Outpoint[]
    transactions: ReadonlyMap<string, Uint8Array>
    left: Outpoint[]
    limit: number
  },
): Promise<{ carriers: Outpoint[]; left: Outpoint[] }> {
  const { transactions } = written
  const found: Outpoint[] = []
  let wanted = [
    ...(await tables.outputs.receivedBy(written.outputs)),
    ...(await tables.outputs.missingBehind([...transactions.keys()])),
    ...written.left,
  ]
  const effort = new Effort(written.limit)
  while (wanted.length > 0 && !effort.isOver) {
    const carriers = await carriersAt(tables, unique(wanted, formatOutpoint), { transactions, effort })
    for (const part of parts(carriers, ROWS_A_STATEMENT))
      await tables.transactions.insertNew(
        'graph_outputs',
        part.map((output) => outputRow(output)),
      )
    found.push(...carriers.map(({ outpoint }) => outpoint))
    wanted = carriers.flatMap(({ previous }) => previous ?? [])
    await yieldBetweenStatements()
  }
  return { carriers: found.reverse(), left: wanted }
}

/** Those of the outpoints that are coins without content of stored transactions and have no record yet. */
async function carriersAt(
  tables: GraphTables,
  outpoints: Outpoint[],
  { transactions, effort }: { transactions: ReadonlyMap<string, Uint8Array>; effort: Effort },
): Promise<OutputRecord[]> {
  const recorded = new Set(
    (await tables.outputs.valuesAmong(outpoints)).map(({ outpoint }) => formatOutpoint(outpoint)),
  )
  const missing = outpoints.filter((outpoint) => !recorded.has(formatOutpoint(outpoint)))
  const txids = [...new Set(missing.map(({ txid }) => txid))]
  const held = await tables.transactions.held(txids.filter((txid) => !transactions.has(txid)))
  const inactive = await tables.transactions.inactiveAmong(txids)
  const carriers: OutputRecord[] = []
  const byTransaction = groupBy(missing, ({ txid }) => txid)
  for (const [txid, coins] of byTransaction) {
    const raw = transactions.get(txid)
    // What is built on an inactive transaction is inactive, too.
    if (inactive.has(txid) || (raw === undefined && !held.has(txid))) continue
    const view = raw ? viewOf({ txid, raw }) : await storedTransaction(txid, tables.transactions)
    effort.add(view)
    if (view === undefined) continue
    carriers.push(...(await carriersIn(tables, view, coins)))
    await yieldBetweenStatements()
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
    // One with content and no record was refused by this host: it cannot tell where the ordinal starts.
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

/**
 * Resolves the predecessors of outputs that were recorded before the values they depend on were known: from the new records,
 * or from the values of the coins that their transaction spends. So the graph is the same in whatever order transactions
 * arrive.
 *
 * @param records.left Transactions with unresolved outputs that earlier writes left.
 * @param records.limit How many more transactions to look at; a large one counts for several.
 * @returns The resolved outputs, and the transactions that are left.
 */
export async function resolvePredecessors(
  tables: GraphTables,
  records: { outputs: OutputRecord[]; transactions: TransactionRecord[]; left: string[]; limit: number },
): Promise<{ resolved: Outpoint[]; left: string[] }> {
  const { outputs } = records
  const resolved = await resolveFromRecords(tables, outputs)
  const inserted = new Set(records.transactions.map(({ txid }) => txid))
  const own = new Set(outputs.filter(({ unsettled }) => unsettled).map(({ outpoint }) => outpoint.txid))
  const others = new Set([...records.left, ...(await tables.outputs.unresolvedSpenders([...inserted]))])
  const waiting = [...others].filter((txid) => !own.has(txid))
  for (const txid of own) resolved.push(...(await resolveTransaction(tables, txid)))
  const effort = new Effort(records.limit)
  while (!effort.isOver) {
    const txid = waiting.pop()
    if (txid === undefined) break
    for (const each of await resolveTransaction(tables, txid, effort)) resolved.push(each)
  }
  return { resolved, left: waiting }
}

/** A later record of an output may know more than the first. */
async function resolveFromRecords(tables: GraphTables, outputs: OutputRecord[]): Promise<Outpoint[]> {
  const known = outputs.filter(({ unsettled }) => !unsettled)
  const previous = new Map(known.map((output) => [formatOutpoint(output.outpoint), output.previous]))
  const unresolved = await tables.outputs.unresolvedAmong(known.map(({ outpoint }) => outpoint))
  for (const outpoint of unresolved) {
    await tables.outputs.resolvePredecessor(outpoint, previous.get(formatOutpoint(outpoint)))
    await yieldBetweenStatements()
  }
  return unresolved
}

/** Resolves those outputs of a transaction whose flow the stored values determine. */
async function resolveTransaction(tables: GraphTables, txid: string, effort?: Effort): Promise<Outpoint[]> {
  await yieldBetweenStatements()
  const unresolved = await tables.outputs.unresolvedOf(txid)
  const transaction = unresolved.length === 0 ? undefined : await storedTransaction(txid, tables.transactions)
  effort?.add(transaction)
  if (transaction === undefined) return []
  const { inputs } = transaction
  const { predecessors } = await storedFlow(tables.transactions, transaction)
  await yieldBetweenStatements()
  const resolved: Outpoint[] = []
  for (const vout of unresolved) {
    const predecessor = predecessors[vout]
    if (predecessor === undefined || predecessor.kind === 'unknown') continue
    await tables.outputs.resolvePredecessor(
      { txid, vout },
      predecessor.kind === 'input' ? inputs[predecessor.input] : undefined,
    )
    resolved.push({ txid, vout })
  }
  return resolved
}

/**
 * The flow of ordinals through a transaction (BRC-159). The values of outputs are stored with their spends, so that it takes
 * one read, however many transactions are spent from.
 */
export async function storedFlow(tables: TransactionTables, transaction: TransactionView): Promise<Flow> {
  const spends = await tables.spendsBy(transaction.txid)
  await yieldBetweenStatements()
  return flowBy(transaction, spends)
}

/** How many spends are looked up at once. */
const A_PART = 1000

/** Adds known values to spends before they are written. @param transactions Raw transactions of the same write. */
export async function withValues(
  tables: GraphTables,
  spends: SpendRecord[],
  transactions: ReadonlyMap<string, Uint8Array>,
): Promise<SpendRecord[]> {
  const outlines = new Map<string, number[] | undefined>()
  const valued: SpendRecord[] = []
  for (const part of parts(spends, A_PART))
    for (const spend of await valuesOfPart(tables, part, { transactions, outlines })) valued.push(spend)
  return valued
}

async function valuesOfPart(
  { transactions: tables, outputs }: GraphTables,
  spends: SpendRecord[],
  known: {
    transactions: ReadonlyMap<string, Uint8Array>
    /** The output values of transactions read so far. */
    outlines: Map<string, number[] | undefined>
  },
): Promise<SpendRecord[]> {
  const { transactions, outlines } = known
  const values = new Map<string, number>()
  const learn = (outpoint: { txid: string; vout: number }, satoshis: number | undefined): void => {
    if (satoshis !== undefined) values.set(formatOutpoint(outpoint), satoshis)
  }
  const spent = unique(
    spends.map(({ outpoint }) => outpoint),
    formatOutpoint,
  )
  const elsewhere = spent.filter(({ txid }) => !transactions.has(txid))
  for (const { outpoint, satoshis } of await outputs.valuesAmong(elsewhere)) learn(outpoint, satoshis)
  const unknown = elsewhere.filter((outpoint) => !values.has(formatOutpoint(outpoint)))
  const held = await tables.held([...new Set(unknown.map(({ txid }) => txid))])
  const valuesOf = async (txid: string): Promise<number[] | undefined> => {
    if (!outlines.has(txid)) outlines.set(txid, (await readOutline(txid, tables))?.outputValues)
    await yieldBetweenStatements()
    return outlines.get(txid)
  }
  for (const outpoint of spent) {
    const { txid, vout } = outpoint
    if (values.has(formatOutpoint(outpoint))) continue
    const raw = transactions.get(txid)
    if (raw !== undefined) learn(outpoint, outputOf(viewOf({ txid, raw }), vout)?.satoshis)
    else if (held.has(txid)) learn(outpoint, (await valuesOf(txid))?.[vout])
  }
  return spends.map((spend) => {
    const satoshis = values.get(formatOutpoint(spend.outpoint))
    return satoshis === undefined ? spend : { ...spend, satoshis }
  })
}

/** Adds the values of new transactions' outputs to stored spends of them. */
export async function writeSpentValues(
  { transactions: tables }: GraphTables,
  fresh: { txid: string; raw: Uint8Array }[],
): Promise<void> {
  const raw = new Map(fresh.map((transaction) => [transaction.txid, transaction.raw]))
  const byTransaction = groupBy(await tables.unvaluedOutputs([...raw.keys()]), ({ txid }) => txid)
  for (const [txid, spent] of byTransaction) {
    const bytes = raw.get(txid)
    const view = bytes && viewOf({ txid, raw: bytes })
    const byValue = groupBy(spent, ({ vout }) => view && outputOf(view, vout)?.satoshis)
    for (const [satoshis, outputs] of byValue)
      if (satoshis !== undefined)
        await tables.setSpentValue({ txid, vouts: outputs.map(({ vout }) => vout), satoshis })
  }
}
