import { isListed, UNKNOWN_RECENCY } from '../../graph/listings.js'
import type { NameRecord, OutputRecord, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { readOutline, storedTransaction, viewOf } from '../../graph/stored-transaction.js'
import { type Flow, flowBy, holdsOrdinal } from '../../graph/transaction-records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { outputOf, type TransactionView } from '../../protocol/transaction.js'
import type { LineageChange } from '../read/lineages.js'
import type { Place } from '../read/lookups.js'
import {
  formatLineage,
  groupBy,
  incompleteKey,
  isComplete,
  isSameLineage,
  type Lineage,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import { outputRow, type RecordRow } from '../rows/record-rows.js'
import { Effort } from './backlog.js'
import type { GraphTables, Head, MovedSteps, PlacedOutput, TransactionTables } from './graph-tables.js'
import { listOutputs } from './listings.js'

/**
 * Every output belongs to a lineage: the unbroken run of 1-sat coins that is known to lead to it (BRC-159), in which each
 * output has a step. Lineages are updated on every write, in whatever order transactions arrive, so that no read has to follow
 * an ordinal from coin to coin.
 *
 * A lineage is complete if its start is known: its first output received no 1-sat coin, or it is the origin of a name, where a
 * lineage starts whatever the output received (protocol 5). It is incomplete while the coin that its first output received is
 * not stored. When that coin arrives, the two lineages become one: outputs move into the complete lineage, and of two
 * incomplete ones, those of the shorter into the longer. So an output moves into a complete lineage once, and before that
 * about as often as the logarithm of the number of steps, whatever the order in which they arrive.
 *
 * A write moves a limited number of outputs. If there are more, the rest stays an incomplete lineage, and its first output is
 * left to a later write.
 *
 * @param written.resolved Those of the outputs whose predecessor was resolved by this write.
 * @param written.gone Outputs that were removed: those that received them start lineages of their own until they are
 * removed, too.
 * @param written.left Outputs that earlier writes left to be linked.
 * @param written.limit About how many outputs to move.
 */
export async function linkLineages(
  tables: GraphTables,
  written: {
    outputs: Outpoint[]
    resolved: Outpoint[]
    names: NameRecord[]
    gone: Outpoint[]
    left: Outpoint[]
    limit: number
  },
): Promise<LinkedLineages> {
  const { gone } = written
  const linker = new Linker(tables, written.limit)
  for (const outpoint of await tables.outputs.receiversOf(gone)) await linker.separate(outpoint)
  const names = written.names.map(({ outpoint }) => outpoint)
  for (const outpoint of await startsAmong(tables, [...names, ...written.resolved, ...written.left]))
    await linker.begin(outpoint)
  const outputs = unique([...written.outputs, ...written.left], formatOutpoint)
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const found = await tables.outputs.headsAmong(part)
    // In the order of the records, so that parents come first and each lineage grows at its end.
    const place = new Map(part.map((outpoint, at) => [formatOutpoint(outpoint), at]))
    const placeOfHead = (head: Head): number => place.get(formatOutpoint(head.outpoint)) ?? 0
    for (const head of found.sort((a, b) => placeOfHead(a) - placeOfHead(b))) await linker.join(head)
    for (const head of await tables.outputs.headsBehind(part)) await linker.join(head)
    await yieldBetweenStatements()
  }
  const changed = await tables.outputs.stepsOf([...outputs, ...names, ...linker.members])
  await yieldBetweenStatements()
  const { lost, former, begun, left, claimants } = linker
  return { changes: earliestOf(changed), lost, former: [...former, ...gone], begun, left, claimants }
}

interface LinkedLineages {
  /** The changed lineages, each once, with one of their outputs. */
  changes: PlacedOutput[]
  /** Complete lineages whose last steps moved to others. */
  lost: LineageChange[]
  /** Outputs that may have been the first of their lineage, and are not any more. */
  former: Outpoint[]
  /** Outputs that were the first of an incomplete lineage, and are of a complete one. */
  begun: Outpoint[]
  /** Outputs that are left to be linked. */
  left: Outpoint[]
  /** Transactions with parents that may count now or no longer, as outputs moved. */
  claimants: ReadonlySet<string>
}

/** For each lineage, the output with the lowest step. */
function earliestOf(places: PlacedOutput[]): PlacedOutput[] {
  const earliest = new Map<string, PlacedOutput>()
  for (const place of places) {
    const key = formatLineage(place.lineage)
    const known = earliest.get(key)
    if (known === undefined || place.from < known.from) earliest.set(key, place)
  }
  return [...earliest.values()]
}

/**
 * Writes outputs. Most received the last coin of a stored lineage, and are written as its next step.
 *
 * @param written.restored How many of them, at the start of the list, were stored before.
 * @param written.names New names: lineages start at their origins, whatever these received.
 */
export async function writeOutputs(
  tables: GraphTables,
  { outputs, restored, names }: { outputs: OutputRecord[]; restored: number; names: NameRecord[] },
): Promise<void> {
  const again = new Set(outputs.slice(0, restored))
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const further = part.filter(({ previous, unsettled }) => previous !== undefined || unsettled)
    const known = await tables.outputs.namesAmong(further.map(({ outpoint }) => outpoint))
    const starting = new Set([...names, ...known].map(({ outpoint }) => formatOutpoint(outpoint)))
    const received = await tables.outputs.stepsOf(further.flatMap(({ previous }) => previous ?? []))
    const places = new Map(
      received.map(({ outpoint, lineage, from: step }) => [formatOutpoint(outpoint), { lineage, step }]),
    )
    const recencies = await listOutputs(tables, part)
    const rows: RecordRow[] = []
    for (const output of part) {
      const { outpoint, previous, unsettled } = output
      const key = formatOutpoint(outpoint)
      const before = previous && places.get(formatOutpoint(previous))
      let place = { lineage: outpointPair(outpoint) as Lineage, step: 0 }
      if ((previous !== undefined || unsettled) && !starting.has(key)) {
        if (before) place = { lineage: before.lineage, step: before.step + 1 }
        else place.lineage = again.has(output) ? await freeKey(tables, outpoint) : incompleteKey(outpoint)
      }
      // What is stored already stays where it is.
      if (!places.has(key)) places.set(key, place)
      const recency = isListed(output) ? (recencies.get(outpoint.txid) ?? UNKNOWN_RECENCY) : undefined
      rows.push(outputRow(output, { ...place, recency }))
    }
    await tables.transactions.insertNew('graph_outputs', rows)
  }
}

/** A key for an incomplete lineage. Outputs may have left one with the key that they gave it, and outputs remain in it. */
async function freeKey(tables: GraphTables, outpoint: Outpoint): Promise<Lineage> {
  for (let attempt = 1; ; attempt++) {
    const key = incompleteKey(outpoint, attempt)
    if ((await tables.rows.firstOf(key)) === undefined) return key
  }
}

/** Those of the outputs that start a complete lineage, and are in another one. */
async function startsAmong(tables: GraphTables, outpoints: Outpoint[]): Promise<Outpoint[]> {
  if (outpoints.length === 0) return []
  const places = await tables.outputs.stepsOf(outpoints)
  const others = places
    .filter(({ outpoint, lineage }) => !isSameLineage(lineage, outpointPair(outpoint)))
    .map(({ outpoint }) => outpoint)
  const starting = [
    ...(await tables.outputs.withoutPredecessor(others)),
    ...(await tables.outputs.namesAmong(others)).map(({ outpoint }) => outpoint),
  ]
  return unique(starting, formatOutpoint)
}

interface Extent {
  first: number
  last: number
}

/** Moves outputs between lineages, and notes what changes. */
class Linker {
  /** Outputs of the changed lineages, among them the first ones that moved. */
  readonly members: Outpoint[] = []
  readonly lost: LineageChange[] = []
  readonly former: Outpoint[] = []
  readonly begun: Outpoint[] = []
  readonly left: Outpoint[] = []
  readonly claimants = new Set<string>()
  private moved = 0

  constructor(
    private readonly tables: GraphTables,
    private readonly limit: number,
  ) {}

  /** Makes an output the first of an incomplete lineage: what it received is gone. */
  async separate(outpoint: Outpoint): Promise<void> {
    await yieldBetweenStatements()
    const { lineage, step } = await this.placeOf(outpoint)
    // At the origin of a name, it is the first of a complete one.
    if (isSameLineage(lineage, outpointPair(outpoint))) return
    this.members.push(outpoint)
    if ((await this.extentOf(lineage))?.first === step) return
    const to = await freeKey(this.tables, outpoint)
    await this.moveRest({ lineage, from: step, to, further: -step })
  }

  /** Makes an output the first of a complete lineage. */
  async begin(outpoint: Outpoint): Promise<void> {
    await yieldBetweenStatements()
    if (this.isFull(outpoint)) return
    const { lineage, step } = await this.placeOf(outpoint)
    this.members.push(outpoint)
    this.begun.push(outpoint)
    const moved = { lineage, from: step, to: outpointPair(outpoint), further: -step }
    const extent = await this.extentOf(lineage)
    if (extent?.first === step) await this.moveSome({ ...moved, last: extent.last })
    else await this.moveRest(moved)
  }

  /** Joins the lineage of an output with that of the coin which it received. */
  async join({ outpoint, previous }: Head): Promise<void> {
    await yieldBetweenStatements()
    if (this.isFull(outpoint)) return
    const [own, received] = [await this.placeOf(outpoint), await this.placeOf(previous)]
    if (isSameLineage(own.lineage, received.lineage)) return
    this.members.push(outpoint, previous)
    this.former.push(outpoint)
    const further = received.step + 1 - own.step
    const moved = { lineage: own.lineage, from: own.step, to: received.lineage, further }
    const [behind, front] = [await this.extentOf(own.lineage), await this.extentOf(received.lineage)]
    if (behind?.first !== own.step) await this.moveRest(moved)
    else if (front === undefined || behind.last - behind.first <= front.last - front.first)
      await this.moveSome({ ...moved, last: behind.last })
    else await this.moveLast({ lineage: received.lineage, ...front, to: own.lineage, further: -further })
  }

  /** Whether this write has moved enough: then an output is left to a later one. */
  private isFull(outpoint: Outpoint): boolean {
    if (this.moved < this.limit) return false
    this.left.push(outpoint)
    return true
  }

  /** Moves the outputs from a step on, all at once: the lineage that they leave must not end with them. */
  private async moveRest(moved: MovedSteps): Promise<void> {
    const { rows } = this.tables
    const { lineage, from } = moved
    await this.moveSteps(moved)
    if (isComplete(lineage)) this.lost.push({ lineage, from })
    const rest = await rows.lastOf(lineage)
    if (rest) this.members.push(rest.outpoint)
  }

  /** Moves outputs from a step on, as many as this write may move. The first of the others is left to be linked. */
  private async moveSome({ last, ...moved }: MovedSteps & { last: number }): Promise<void> {
    const until = Math.min(moved.from + this.limit - this.moved, last + 1)
    this.moved += until - moved.from
    await this.moveSteps({ ...moved, until })
    const rest = until > last ? undefined : await this.tables.rows.firstOf(moved.lineage)
    if (rest === undefined) return
    this.left.push(rest.outpoint)
    this.members.push(rest.outpoint)
  }

  /** Moves the last outputs of a lineage to the start of another, as many as this write may move. */
  private async moveLast(moved: Omit<MovedSteps, 'from'> & Extent): Promise<void> {
    const { lineage, first, last, to, further } = moved
    const { rows } = this.tables
    const from = Math.max(last + 1 - (this.limit - this.moved), first)
    this.moved += last + 1 - from
    await this.moveSteps({ lineage, from, to, further })
    if (from === first) return
    const [next, rest] = [await rows.firstOf(to), await rows.lastOf(lineage)]
    if (next) this.left.push(next.outpoint)
    if (rest) this.members.push(rest.outpoint)
  }

  private async moveSteps(moved: MovedSteps): Promise<void> {
    const { outputs } = this.tables
    await outputs.moveSteps(moved)
    const { to: lineage, from, further, until = Number.MAX_SAFE_INTEGER - further } = moved
    const end = until + further
    for (let next: number | undefined = from + further; next !== undefined; ) {
      const page = await outputs.pageOf({ lineage, from: next, until: end, limit: ROWS_A_STATEMENT })
      for (const txid of await outputs.claimantsOf(page.map(({ outpoint }) => outpoint)))
        this.claimants.add(txid)
      const last = page.at(-1)
      next = last === undefined || page.length < ROWS_A_STATEMENT ? undefined : last.from + 1
      await yieldBetweenStatements()
    }
  }

  /** The first and the last step of an incomplete lineage; undefined for a complete one. */
  private async extentOf(lineage: Lineage): Promise<Extent | undefined> {
    if (isComplete(lineage)) return undefined
    const { rows } = this.tables
    const [first, last] = [await rows.firstOf(lineage), await rows.lastOf(lineage)]
    return first && last && { first: first.step, last: last.step }
  }

  private async placeOf(outpoint: Outpoint): Promise<Place> {
    const place = await this.tables.rows.placeOf(outpoint)
    if (place === undefined) throw new Error(`${formatOutpoint(outpoint)} is missing from its lineage`)
    return place
  }
}

/**
 * Writes carriers. The origin of an ordinal is the first output of its lineage with content (BRC-159), and 1-sat coins
 * without content may precede it. Known ones are written as carriers, back to the start of the lineage or to an unknown coin,
 * so that the lineage shows whether anything is missing. They are removed when nothing is known any more that received them.
 *
 * @param written.outputs Outputs that are new, or whose predecessor was resolved.
 * @param written.transactions New raw transactions, by txid.
 * @param written.active Transactions that are new or restored.
 * @param written.freed Coins that were received by an output that is gone, or that a new name starts at.
 * @param written.left Coins that earlier writes left to be looked at.
 * @param written.limit About how many transactions to look at; a large one counts for several.
 * @returns The carriers written, in the order of their lineages, those removed, and the coins that are left.
 */
export async function writeCarriers(
  tables: GraphTables,
  written: {
    outputs: Outpoint[]
    transactions: ReadonlyMap<string, Uint8Array>
    active: string[]
    freed: Outpoint[]
    left: Outpoint[]
    limit: number
  },
): Promise<{ carriers: Outpoint[]; removed: Outpoint[]; left: Outpoint[] }> {
  const { transactions } = written
  const before = await removeUnreceived(tables, [...written.freed, ...written.left], written.limit)
  const found: Outpoint[] = []
  let wanted = [
    ...(await tables.outputs.receivedBy(written.outputs)),
    ...(await tables.outputs.missingBehind(written.active)),
    ...before.received,
  ]
  const effort = new Effort(written.limit)
  while (wanted.length > 0 && !effort.isOver) {
    const carriers = await carriersAt(tables, unique(wanted, formatOutpoint), { transactions, effort })
    await writeOutputs(tables, { outputs: carriers, restored: 0, names: [] })
    found.push(...carriers.map(({ outpoint }) => outpoint))
    wanted = carriers.flatMap(({ previous }) => previous ?? [])
    await yieldBetweenStatements()
  }
  return { carriers: found.reverse(), removed: before.removed, left: [...wanted, ...before.left] }
}

/**
 * Removes those of the coins that are carriers which nothing received, and what they received in turn.
 *
 * @returns The removed ones, those of the coins that something received, and those that are left.
 */
async function removeUnreceived(
  tables: GraphTables,
  coins: Outpoint[],
  limit: number,
): Promise<{ removed: Outpoint[]; received: Outpoint[]; left: Outpoint[] }> {
  const removed: Outpoint[] = []
  const received: Outpoint[] = []
  let left = unique(coins, formatOutpoint)
  while (left.length > 0 && removed.length < limit) {
    const isReceived = new Set((await tables.outputs.receivedAmong(left)).map(formatOutpoint))
    for (const coin of left) if (isReceived.has(formatOutpoint(coin))) received.push(coin)
    const carriers = await tables.outputs.carriersAmong(
      left.filter((coin) => !isReceived.has(formatOutpoint(coin))),
    )
    left = await tables.outputs.receivedBy(carriers)
    await tables.outputs.deleteCarriers(carriers)
    removed.push(...carriers)
    await yieldBetweenStatements()
  }
  return { removed, received, left }
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
 * @param records.isResolved Whether the outputs of a transaction say all that is known now.
 * @param records.left Transactions with unresolved outputs that earlier writes left.
 * @param records.limit How many more transactions to look at; a large one counts for several.
 * @returns The resolved outputs, and the transactions that are left.
 */
export async function resolvePredecessors(
  tables: GraphTables,
  records: {
    outputs: OutputRecord[]
    isResolved: (txid: string) => boolean
    transactions: TransactionRecord[]
    left: string[]
    limit: number
  },
): Promise<{ resolved: Outpoint[]; left: string[] }> {
  const outputs = records.outputs.filter(({ outpoint }) => !records.isResolved(outpoint.txid))
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
