import { inParentsFirst, parentsOf } from '../graph/ancestry.js'
import type { LookupFormula, LookupQuestion, LookupService } from '../graph/overlay-interfaces.js'
import type { NodeRecord } from '../graph/records.js'
import { type OutlineSource, readOutline, type TransactionOutline } from '../graph/stored-transaction.js'
import type { ListedTransaction } from '../graph/write-beef.js'
import { type Awaitable, whenReady, yieldToEventLoop } from '../graph/yield-to-event-loop.js'
import { placement } from '../protocol/ordinal-flow.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { isCoinbase } from '../protocol/transaction.js'
import type { GraphReads } from './fact-store.js'
import type { Names } from './names.js'

interface Collected {
  listed: ListedTransaction
  /** The transactions that it spends from, collected or not. */
  parents: string[]
}

/**
 * Transactions that together prove something, each once. They are read one at a time; of each, only its txid, length, proof and
 * parents are kept.
 */
export class Collection {
  private readonly collected = new Map<string, Collected>()
  private readonly seen = new Set<string>()

  /** Bytes of the transactions and their merkle paths: about the length of their BEEF. */
  bytes = 0

  constructor(
    private readonly store: OutlineSource,
    private readonly pace: Pace = () => undefined,
  ) {}

  /** Reads a transaction without its scripts, when the pace allows it. */
  outline(txid: string): Awaitable<TransactionOutline | undefined> {
    return whenReady(this.pace(), () => readOutline(txid, this.store))
  }

  has(txid: string): boolean {
    return this.collected.has(txid)
  }

  /**
   * Adds a transaction and, if it is unproven, its ancestors down to proven ones, as far as the store has them.
   *
   * @param more Called for each with its inputs; may return a transaction to add besides its parents, which is visited first.
   */
  async addAncestry(
    txid: string,
    more?: (transaction: { txid: string; inputs: Outpoint[] }) => Promise<string | undefined>,
  ): Promise<void> {
    const { seen } = this
    const found: Collected[] = []
    const waiting = [txid]
    for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
      if (seen.has(each)) continue
      seen.add(each)
      try {
        const reading = this.outline(each)
        const outline = reading instanceof Promise ? await reading : reading
        if (outline === undefined) continue
        const first = more && (await more(outline))
        const before = first === undefined ? [] : [first]
        const parents = [...before, ...parentsOf(outline)]
        found.push({ listed: listed(outline), parents })
        // One by one: there may be more than a call can have arguments.
        for (const parent of (outline.proof === undefined ? parents : before).toReversed())
          waiting.push(parent)
      } catch (error) {
        // They are not added, so another walk has to visit them again.
        for (const gone of [each, ...found.map(({ listed }) => listed.txid)]) seen.delete(gone)
        throw error
      }
    }
    for (const each of found) this.add(each)
  }

  /** Adds a transaction that was read already and, if it is unproven, its ancestors as {@link addAncestry} does. */
  async addOutlined(outline: TransactionOutline): Promise<void> {
    const parents = parentsOf(outline)
    if (outline.proof === undefined) for (const parent of parents) await this.addAncestry(parent)
    this.seen.add(outline.txid)
    this.add({ listed: listed(outline), parents })
  }

  private add(collected: Collected): void {
    const { txid, length, proof } = collected.listed
    this.bytes += length + (proof?.merklePath.length ?? 0)
    this.collected.set(txid, collected)
  }

  /**
   * All transactions, parents before children (BRC-62), otherwise in the order in which they were added. So one that descends
   * from all others is last. Yields to the event loop, however many there are.
   */
  async parentsFirst(): Promise<ListedTransaction[]> {
    const ordered: ListedTransaction[] = []
    for (const { listed } of inParentsFirst(this.collected, ({ parents }) => parents)) {
      ordered.push(listed)
      if (ordered.length % ORDERED_A_SLICE === 0) await yieldToEventLoop()
    }
    return ordered
  }
}

const ORDERED_A_SLICE = 1000

function listed({ txid, length, proof }: TransactionOutline): ListedTransaction {
  return { txid, length, ...(proof && { proof }) }
}

/** Transactions that prove an output, parents before children, that of the output last. */
export interface Part {
  /** The outpoint that they prove: the requested one, or the furthest on the way to it that fits. */
  end: Outpoint
  transactions: ListedTransaction[]
}

/**
 * The start of a list of transactions that is a proof by itself: up to the last stop that fits, but at least to the first. So an
 * answer over the limit is only ever one step and its proof.
 *
 * @param stops The outpoints that transactions on the way prove, by txid.
 */
function firstPart(
  transactions: ListedTransaction[],
  {
    stops,
    end,
    maxBytes = Number.POSITIVE_INFINITY,
  }: { stops: Map<string, Outpoint>; maxBytes: number | undefined } & Pick<Part, 'end'>,
): Part {
  let bytes = 0
  let last: { count: number; end: Outpoint } | undefined
  for (const [at, { txid, length, proof }] of transactions.entries()) {
    bytes += length + (proof?.merklePath.length ?? 0)
    if (bytes > maxBytes && last !== undefined)
      return { end: last.end, transactions: transactions.slice(0, last.count) }
    const stop = stops.get(txid)
    if (stop !== undefined) last = { count: at + 1, end: stop }
  }
  return { end, transactions }
}

/** Where the transactions of a proof and their order are read from. */
export type ProvenanceStore = Pick<GraphReads, 'transactions' | 'names' | 'ordinals'>

/** Called before each read, which waits for the promise, if any. Throws once nobody waits for the answer any more. */
export type Pace = () => Promise<void> | undefined

/** Lists all transactions for the BEEF of an output, or of an earlier one on the way to it if a part is requested. */
export type ReadHistory = (pace: Pace | undefined) => Promise<Part>

/** An output of a formula, with its history if that was requested. */
export type AnsweringOutput = LookupFormula[number] & { transactions?: ReadHistory }

/** A lookup service, as its host asks it; a host that assembles BEEF itself reads the histories of outputs. */
export interface AnsweringService extends Pick<LookupService, 'getDocumentation' | 'getMetaData'> {
  /** @throws QueryError for a question of no known form. */
  lookup(question: LookupQuestion): Promise<AnsweringOutput[]>
  /** For a service of names: whether an answer with this many outputs says that something does not exist. */
  saysAbsence?(query: unknown, found: number): Promise<boolean>
}

/** Everything needed to check where an ordinal comes from, or why it is not available. */
export type Provenance =
  | {
      kind: 'complete'
      /** The ordinal's current output, as far as the store knows; in a part, the output that it leads to. */
      tip: Outpoint
      /** Parents before children, the transaction of the tip last. */
      transactions: ListedTransaction[]
    }
  /** The store does not have the outpoint, or does not know the origin of its ordinal. */
  | { kind: 'unknown' }
  /** The lineage is known, but the store lacks a transaction that proves it: this one, or a parent of it. */
  | { kind: 'incomplete'; txid: string }

/**
 * Collects the provenance (BRC-150, BRC-159) of the ordinal in an outpoint: every transaction of its unbroken 1-sat lineage, and
 * for each the transactions whose values place the ordinal in it. For the first output these show that no 1-sat coin starts where
 * it starts. Unproven transactions come with their ancestors down to proven ones, as far as the store has them.
 *
 * The origin of a name starts a lineage by rule (`docs/spec/protocol.md`, Ordinals), whatever came before. The transactions
 * that place it are included if the store has all of them, and are not required.
 *
 * Raw transactions are read one at a time and not kept: a lineage may have any number of steps.
 *
 * @param known Outpoints that the caller has verified. Everything up to the last of them on this lineage is left out, unless an
 * unproven transaction needs it; the transaction of the tip is always included. Other outpoints are ignored.
 * @param maxBytes If it takes more, a part is listed, as by {@link firstPart}.
 */
export async function provenanceOf(
  outpoint: Outpoint,
  store: ProvenanceStore,
  { known = [], maxBytes, pace }: PartOptions = {},
): Promise<Provenance> {
  const collection = new Collection(store.transactions, pace)
  const stops = new Map<string, Outpoint>()
  let tip: Outpoint | undefined
  for (const { hop, ...place } of hopsAfter(known, () => store.ordinals.lineage(outpoint))) {
    tip = hop
    if (place.isKnown) continue
    stops.set(hop.txid, hop)
    const missing = await addHop({ hop, ...place, collection, store })
    if (missing !== undefined) return { kind: 'incomplete', txid: missing }
  }
  if (tip === undefined) return { kind: 'unknown' }
  await collection.addAncestry(tip.txid)
  const part = firstPart(await collection.parentsFirst(), { stops, end: tip, maxBytes })
  return { kind: 'complete', tip: part.end, transactions: part.transactions }
}

/** What the caller has verified, and the limits of an answer. */
export interface PartOptions {
  known?: readonly Outpoint[] | undefined
  /** In bytes of transactions and merkle paths. */
  maxBytes?: number | undefined
  pace?: Pace | undefined
}

/** One hop of a lineage, and the hop before. */
interface Hop {
  hop: Outpoint
  previous: Outpoint | undefined
  /** Whether the caller knows this hop, or a later one. */
  isKnown: boolean
  /** Whether the caller knows the hop before: its transaction need not be shown. */
  isPreviousKnown: boolean
}

/** The hops of a lineage, each marked as known up to the last one that the caller knows. */
function* hopsAfter(known: readonly Outpoint[], lineage: () => Iterable<Outpoint>): Generator<Hop> {
  const asked = new Set(known.map(formatOutpoint))
  let left = 0
  let count = 0
  // Most callers know nothing: for them, the lineage is read only once.
  if (asked.size > 0)
    for (const hop of lineage()) {
      count++
      if (asked.has(formatOutpoint(hop))) left = count
    }
  let previous: Outpoint | undefined
  let isPreviousKnown = false
  for (const hop of lineage()) {
    const isKnown = left > 0
    yield { hop, previous, isKnown, isPreviousKnown }
    left--
    previous = hop
    isPreviousKnown = isKnown
  }
}

/**
 * Adds the transaction of one hop of a lineage with those that place it, as far as the store has them.
 *
 * @param options.previous The hop before; undefined for the first.
 * @returns The txid of a missing transaction; undefined if none is missing.
 */
export async function addHop(options: {
  hop: Outpoint
  previous: Outpoint | undefined
  /** Leave out the transaction of the hop before, unless it is needed for something else. */
  isPreviousKnown?: boolean
  collection: Collection
  store: ProvenanceStore
}): Promise<string | undefined> {
  const { hop, previous, isPreviousKnown = false, collection, store } = options
  const step = await collection.outline(hop.txid)
  if (step === undefined) return hop.txid
  const placing =
    previous === undefined
      ? await startingInputs(step, hop, { store, collection })
      : carryingInputs(step, previous)
  const inputs = placing.kind === 'placed' ? placing.inputs : []
  // The last one carries the ordinal, whose past the caller knows.
  const parents = parentsOf({ inputs: isPreviousKnown ? inputs.slice(0, -1) : inputs })
  for (const txid of parents) await collection.addAncestry(txid)
  await collection.addOutlined(step)
  return placing.kind === 'missing' ? placing.txid : parents.find((txid) => !collection.has(txid))
}

/** The leading inputs of a transaction that place an ordinal in it, or the transaction that is missing to find them. */
type Placing = { kind: 'placed'; inputs: Outpoint[] } | { kind: 'missing'; txid: string }

/** The inputs up to the one that carries the ordinal, according to the lineage. */
function carryingInputs({ txid, inputs }: TransactionOutline, previous: Outpoint): Placing {
  const carrier = inputs.findIndex((input) => isSameOutpoint(input, previous))
  // The lineage changed while it was read.
  if (carrier === -1) return { kind: 'missing', txid }
  return { kind: 'placed', inputs: inputs.slice(0, carrier + 1) }
}

/** The inputs up to the one that covers the place where the first output of a lineage starts. */
async function startingInputs(
  step: TransactionOutline,
  first: Outpoint,
  { store, collection }: { store: ProvenanceStore; collection: Collection },
): Promise<Placing> {
  const { inputs, outputValues } = step
  if (outputValues[first.vout] !== 1 || isCoinbase({ inputs })) return { kind: 'placed', inputs: [] }
  const placing = await coveringInputs({ inputs, outputValues, output: first.vout }, collection)
  if (placing.kind === 'placed') return placing
  const [name] = store.names.genuineOrigins([first])
  return name === undefined ? placing : { kind: 'placed', inputs: [] }
}

async function coveringInputs(
  place: { inputs: Outpoint[]; outputValues: number[]; output: number },
  collection: Collection,
): Promise<Placing> {
  const { inputs } = place
  const isPlaced = placement(place)
  const satoshisOf = spentValues(inputs, collection)
  for (const [i, input] of inputs.entries()) {
    const satoshis = await satoshisOf(input)
    if (satoshis === undefined) return { kind: 'missing', txid: input.txid }
    if (isPlaced(satoshis)) return { kind: 'placed', inputs: inputs.slice(0, i + 1) }
  }
  return { kind: 'placed', inputs }
}

/** Returns a function that reads the values of the coins that a transaction spends; each parent is read once. */
function spentValues(
  inputs: Outpoint[],
  collection: Collection,
): (input: Outpoint) => Promise<number | undefined> {
  const spent = new Map<string, number[]>()
  for (const { txid, vout } of inputs) {
    const vouts = spent.get(txid)
    if (vouts === undefined) spent.set(txid, [vout])
    else vouts.push(vout)
  }
  const values = new Map<string, number | undefined>()
  return async (input) => {
    const wanted = formatOutpoint(input)
    if (!values.has(wanted)) {
      const source = await collection.outline(input.txid)
      for (const vout of spent.get(input.txid) ?? [])
        values.set(formatOutpoint({ txid: input.txid, vout }), source?.outputValues[vout])
    }
    return values.get(wanted)
  }
}

type NodesStore = { transactions: OutlineSource; names: Pick<Names, 'genuineNodes'> }

/** Everything needed to check that a name is genuine, or why it is not available. */
export type NameProof =
  | {
      kind: 'complete'
      /** The origin of the name; in a part, that of the last name on the way. */
      origin: Outpoint
      /** Parents before children, the mint of the name last. */
      transactions: ListedTransaction[]
    }
  | { kind: 'unclaimed' }
  /** The name is claimed, but the store lacks a transaction that proves it: this one, or the node that it spends. */
  | { kind: 'incomplete'; txid: string }

/**
 * Collects the proof of a name (BRC-174 section 4, step 3.2): the genesis transaction and every mint on the way from it to the
 * mint of the name, each once. Unproven transactions come with their ancestors down to proven ones, as far as the store has them.
 *
 * A name of n characters has at most 37 n mints on its way, one for each character claimed at each node.
 *
 * @param options.known Outputs of mints that the caller has verified. The way is shown from the last of them on; others are
 * ignored. The mint of the name is always shown.
 * @param options.maxBytes If it takes more, a part is listed, as by {@link firstPart}.
 */
export async function nameProof(
  name: string,
  options: {
    store: Pick<GraphReads, 'transactions' | 'names'>
    genesis: Outpoint
  } & PartOptions,
): Promise<NameProof> {
  const { store, maxBytes, pace } = options
  const origin = store.names.originOf(name)
  if (origin === undefined) return { kind: 'unclaimed' }
  const collection = new Collection(store.transactions, pace)
  const stops = new Map<string, Outpoint>()
  const end = await addDescent(mintedBeside(origin, name), { ...options, collection, stops })
  if (end !== undefined) return { kind: 'incomplete', txid: end }
  const part = firstPart(await collection.parentsFirst(), { stops: namesAt(stops), end: origin, maxBytes })
  return { kind: 'complete', origin: part.end, transactions: part.transactions }
}

/** The names made by the mints that created these nodes. */
function namesAt(stops: Map<string, Outpoint>): Map<string, Outpoint> {
  return new Map([...stops.keys()].map((txid) => [txid, { txid, vout: MINTED_VOUT }]))
}

/** The output of a mint that holds its name (`docs/spec/protocol.md`, Mints). */
const MINTED_VOUT = 2

/** As for {@link nameProof} and {@link provenanceOf}. */
export interface HistoryOptions extends PartOptions {
  store: ProvenanceStore
  genesis: Outpoint
}

/**
 * All transactions from genesis to the current output of a name, whose transaction is last: the proof of the name, and the
 * lineage of its ordinal with the transactions that place it. Missing ones are left out: a check finds where the proof ends. A
 * part ends with the origin of an earlier name on the way.
 */
export async function nameHistory(
  { name, origin, tip }: { name: string; origin: Outpoint; tip: Outpoint },
  { store, genesis, known = [], maxBytes, pace }: HistoryOptions,
): Promise<Part> {
  const collection = new Collection(store.transactions, pace)
  const nodes = new Map<string, Outpoint>()
  if (!known.some(({ txid }) => txid === origin.txid))
    await addDescent(mintedBeside(origin, name), { collection, store, genesis, known, stops: nodes })
  const stops = namesAt(nodes)
  for (const { hop, ...place } of hopsAfter(known, () => store.ordinals.lineage(origin))) {
    if (!place.isKnown) await addHop({ hop, ...place, collection, store })
    if (isSameOutpoint(hop, tip)) break
  }
  await collection.addAncestry(tip.txid)
  return firstPart(await collection.parentsFirst(), { stops, end: tip, maxBytes })
}

/** All transactions from genesis to a node, as in {@link nameHistory}. A part ends with an earlier node on the way. */
export async function nodeHistory(
  node: NodeRecord,
  { store, genesis, known, maxBytes, pace }: { store: NodesStore; genesis: Outpoint } & PartOptions,
): Promise<Part> {
  const collection = new Collection(store.transactions, pace)
  const stops = new Map<string, Outpoint>()
  await addDescent(node, { collection, store, genesis, known, stops })
  return firstPart(await collection.parentsFirst(), { stops, end: node.outpoint, maxBytes })
}

/** All transactions from genesis to the origin of a name. A part ends with the origin of an earlier name on the way. */
export async function originHistory(
  { name, origin }: { name: string; origin: Outpoint },
  options: { store: NodesStore; genesis: Outpoint } & PartOptions,
): Promise<Part> {
  const { end, transactions } = await nodeHistory(mintedBeside(origin, name), options)
  return { end: { txid: end.txid, vout: MINTED_VOUT }, transactions }
}

/** The node that a mint created beside the name in output 2: one is genuine if the other is. */
export function mintedBeside(origin: Outpoint, name: string): NodeRecord {
  return { outpoint: { txid: origin.txid, vout: 1 }, domain: name }
}

/**
 * Adds the proof of a node to an empty collection: the transaction that created it, the one that created the node which that one
 * spends, and so on to genesis, or to the first that the caller knows. The store's records say which input spends a node, never a
 * script.
 *
 * @returns The txid at which the proof ends before genesis: of a transaction that the store lacks, or that spends no known node.
 * Undefined if it is complete.
 */
async function addDescent(
  node: NodeRecord,
  options: {
    collection: Collection
    store: NodesStore
    genesis: Outpoint
    /** Gets the node that each mint on the way created, by its txid. */
    stops: Map<string, Outpoint>
  } & PartOptions,
): Promise<string | undefined> {
  const { collection, store, genesis, known = [], stops } = options
  const knownTxids = new Set(known.map(({ txid }) => txid))
  const way: { next: NodeRecord | undefined; end?: string } = { next: node }
  // Nodes are visited first, so that no mint is skipped because another one spends its change.
  await collection.addAncestry(node.outpoint.txid, async ({ txid, inputs }) => {
    const created = way.next
    if (created?.outpoint.txid !== txid) return undefined
    way.next = undefined
    if (isSameOutpoint(created.outpoint, genesis)) return undefined
    stops.set(txid, created.outpoint)
    if (knownTxids.has(txid)) return undefined
    const spent = await spentNode(created, inputs, store)
    if (spent === undefined) way.end = txid
    else if (!knownTxids.has(spent.outpoint.txid)) way.next = spent
    return way.next?.outpoint.txid
  })
  return way.end ?? way.next?.outpoint.txid
}

/** The node spent by the mint that created this one: of the same domain, or of the one that it extends. */
async function spentNode(
  { outpoint, domain }: NodeRecord,
  inputs: Outpoint[],
  store: NodesStore,
): Promise<NodeRecord | undefined> {
  const spent = outpoint.vout === 0 ? domain : domain.slice(0, -1)
  return (await store.names.genuineNodes(inputs)).find((node) => node.domain === spent)
}
