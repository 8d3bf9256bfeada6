import { placement } from '../protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { isCoinbase } from '../protocol/transaction.js'
import { ancestry, inParentsFirst, parentsOf } from './ancestry.js'
import type { GraphReader, NamesReader, TransactionSource } from './graph-store.js'
import type { NodeRecord } from './records.js'
import { readOutline, type TransactionOutline } from './stored-transaction.js'
import type { ListedTransaction } from './write-beef.js'
import { yieldToEventLoop } from './yield-to-event-loop.js'

interface Collected {
  listed: ListedTransaction
  /** What it spends of, whether that is collected or not. */
  parents: string[]
}

/**
 * Transactions that show something together, each once. They are read one at a time: kept of each are its txid, length
 * and proof, and the txids of what it spends.
 */
export class Collection {
  private readonly collected = new Map<string, Collected>()
  private readonly seen = new Set<string>()

  /** Of the transactions with their merkle paths: about what a BEEF of them has. */
  bytes = 0

  constructor(private readonly store: TransactionSource) {}

  has(txid: string): boolean {
    return this.collected.has(txid)
  }

  /**
   * Adds a transaction and, where it is not proven, its ancestors down to proven ones, as far as the store holds them.
   *
   * @param more Asked of each, by what it spends: a transaction that it rests on beside those. This one is walked to first.
   */
  async addAncestry(
    txid: string,
    more?: (transaction: { txid: string; inputs: Outpoint[] }) => Promise<string | undefined>,
  ): Promise<void> {
    const { store, seen } = this
    const walk = ancestry({
      txid,
      read: (each) => readOutline(each, store),
      seen,
      visit: async (outline) => {
        const { txid, inputs } = outline
        const parents = parentsOf({ inputs })
        const first = await more?.({ txid, inputs })
        return {
          item: { listed: listed(outline), parents },
          before: [...(outline.proof === undefined ? parents : []), ...(first === undefined ? [] : [first])],
        }
      },
    })
    for await (const each of walk) this.keep(each)
  }

  /** Adds a transaction that was looked at and, where it is not proven, its ancestors as {@link addAncestry} has them. */
  async addOutlined(outline: TransactionOutline): Promise<void> {
    const parents = parentsOf(outline)
    if (outline.proof === undefined) for (const parent of parents) await this.addAncestry(parent)
    this.seen.add(outline.txid)
    this.keep({ listed: listed(outline), parents })
  }

  private keep(collected: Collected): void {
    const { txid, length, proof } = collected.listed
    this.bytes += length + (proof?.merklePath.length ?? 0)
    this.collected.set(txid, collected)
  }

  /**
   * All of them, parents before children (BRC-62); else in the order in which they were added. So one of which all
   * others are ancestors stands last. Others are served meanwhile, however many there are.
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

export type ProvenanceStore = Pick<GraphReader, 'transactions' | 'names' | 'ordinals'>

/** What it takes to check where an ordinal comes from, or why there is none. */
export type Provenance =
  | {
      kind: 'whole'
      /** Where the ordinal is now, as far as the store sees. */
      tip: Outpoint
      /** Parents before children, the transaction of the tip last. */
      transactions: ListedTransaction[]
    }
  /** The store does not hold the outpoint, or does not know the origin of what stands there. */
  | { kind: 'unknown' }
  /** The lineage is known, but the store does not hold all that shows it: this transaction, or what it continues. */
  | { kind: 'incomplete'; txid: string }

/**
 * Collects the provenance (BRC-150, BRC-159) of the ordinal that stands in an outpoint: every transaction of its unbroken
 * 1-sat lineage, and for each the transactions whose values place the ordinal in it. For the first output these show
 * that no 1-sat coin starts where it starts. What is not proven comes with its ancestors down to proven ones, as far as
 * the store holds them.
 *
 * The origin of a name starts a lineage by rule (protocol.md 5), whatever came before: what places it is given where all
 * of it is held, and is not missed where it is not.
 *
 * Raw transactions are read one at a time and not kept, for a lineage may have any number of steps.
 */
export async function provenanceOf(outpoint: Outpoint, store: ProvenanceStore): Promise<Provenance> {
  const collection = new Collection(store.transactions)
  let tip: Outpoint | undefined
  for await (const hop of store.ordinals.lineage(outpoint)) {
    const missing = await addHop({ hop, previous: tip, collection, store })
    if (missing !== undefined) return { kind: 'incomplete', txid: missing }
    tip = hop
  }
  return tip === undefined
    ? { kind: 'unknown' }
    : { kind: 'whole', tip, transactions: await collection.parentsFirst() }
}

/**
 * Adds the transaction of one hop of a lineage with what it rests on, as far as the store holds it.
 *
 * @param options.previous The hop before; undefined for the first.
 * @returns The txid of what the store does not hold; undefined where nothing is missing.
 */
export async function addHop(options: {
  hop: Outpoint
  previous: Outpoint | undefined
  collection: Collection
  store: ProvenanceStore
}): Promise<string | undefined> {
  const { hop, previous, collection, store } = options
  const step = await readOutline(hop.txid, store.transactions)
  if (step === undefined) return hop.txid
  const placing =
    previous === undefined ? await startingInputs(step, hop, store) : carryingInputs(step, previous)
  const parents = placing.kind === 'told' ? parentsOf(placing) : []
  for (const txid of parents) await collection.addAncestry(txid)
  await collection.addOutlined(step)
  return placing.kind === 'missing' ? placing.txid : parents.find((txid) => !collection.has(txid))
}

/** The leading inputs of a transaction that place an ordinal in it, or what is missing to tell them. */
type Placing = { kind: 'told'; inputs: Outpoint[] } | { kind: 'missing'; txid: string }

/** The inputs up to the one that carries the ordinal: that it is the one, the lineage says. */
function carryingInputs({ txid, inputs }: TransactionOutline, previous: Outpoint): Placing {
  const carrier = inputs.findIndex(({ txid, vout }) => txid === previous.txid && vout === previous.vout)
  // A lineage that was read while it changed.
  if (carrier === -1) return { kind: 'missing', txid }
  return { kind: 'told', inputs: inputs.slice(0, carrier + 1) }
}

/** The inputs up to the one that covers the place where the first output of a lineage starts. */
async function startingInputs(
  step: TransactionOutline,
  first: Outpoint,
  store: ProvenanceStore,
): Promise<Placing> {
  const { inputs, outputValues } = step
  if (outputValues[first.vout] !== 1 || isCoinbase({ inputs })) return { kind: 'told', inputs: [] }
  const placing = await coveringInputs({ inputs, outputValues, output: first.vout }, store.transactions)
  if (placing.kind === 'told') return placing
  const [name] = await store.names.genuineOrigins([first])
  return name === undefined ? placing : { kind: 'told', inputs: [] }
}

async function coveringInputs(
  place: { inputs: Outpoint[]; outputValues: number[]; output: number },
  transactions: TransactionSource,
): Promise<Placing> {
  const { inputs } = place
  const isPlaced = placement(place)
  const satoshisOf = spentValues(inputs, transactions)
  for (const [i, input] of inputs.entries()) {
    const satoshis = await satoshisOf(input)
    if (satoshis === undefined) return { kind: 'missing', txid: input.txid }
    if (isPlaced(satoshis)) return { kind: 'told', inputs: inputs.slice(0, i + 1) }
  }
  return { kind: 'told', inputs }
}

/** Tells the values of the coins that a transaction spends; each transaction that it spends of is read once. */
function spentValues(
  inputs: Outpoint[],
  transactions: TransactionSource,
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
      const source = await readOutline(input.txid, transactions)
      for (const vout of spent.get(input.txid) ?? [])
        values.set(formatOutpoint({ txid: input.txid, vout }), source?.outputValues[vout])
    }
    return values.get(wanted)
  }
}

type NodesStore = { transactions: TransactionSource; names: Pick<NamesReader, 'genuineNodes'> }

/** What it takes to check that a name is genuine, or why there is none. */
export type NameProof =
  | {
      kind: 'whole'
      origin: Outpoint
      /** Parents before children, the mint of the name last. */
      transactions: ListedTransaction[]
    }
  | { kind: 'unclaimed' }
  /** The name is claimed, but the store does not hold all that shows it: this transaction, or the node that it spends. */
  | { kind: 'incomplete'; txid: string }

/**
 * Collects the proof of a name (BRC-174 section 4, step 3.2): the genesis transaction and every mint on the way from
 * it to the mint of the name, each once. What is not proven comes with its ancestors down to proven ones, as far as the
 * store holds them.
 *
 * A name of n characters has at most 37 n mints on its way, one for each character claimed at each node.
 */
export async function nameProof(
  name: string,
  { store, genesis }: { store: Pick<GraphReader, 'transactions' | 'names'>; genesis: Outpoint },
): Promise<NameProof> {
  const origin = await store.names.originOf(name)
  if (origin === undefined) return { kind: 'unclaimed' }
  const collection = new Collection(store.transactions)
  const end = await addDescent(mintedBeside(origin, name), { collection, store, genesis })
  return end === undefined
    ? { kind: 'whole', origin, transactions: await collection.parentsFirst() }
    : { kind: 'incomplete', txid: end }
}

export interface HistoryOptions {
  store: ProvenanceStore
  genesis: Outpoint
}

/**
 * Everything from where a name is now back to genesis, its transaction last: its ordinal's lineage from the origin on
 * with what places it, and the proof of the name. What of this the store does not hold is not there: whoever checks it
 * sees where it ends.
 */
export async function nameHistory(
  { name, origin, tip }: { name: string; origin: Outpoint; tip: Outpoint },
  { store, genesis }: HistoryOptions,
): Promise<ListedTransaction[]> {
  const collection = new Collection(store.transactions)
  await addDescent(mintedBeside(origin, name), { collection, store, genesis })
  let previous: Outpoint | undefined
  for await (const hop of store.ordinals.lineage(origin)) {
    await addHop({ hop, previous, collection, store })
    if (isSame(hop, tip)) break
    previous = hop
  }
  await collection.addAncestry(tip.txid)
  return await collection.parentsFirst()
}

/** Everything from a node back to genesis, its transaction last, as {@link nameHistory} has it. */
export async function nodeHistory(
  node: NodeRecord,
  { store, genesis }: { store: NodesStore; genesis: Outpoint },
): Promise<ListedTransaction[]> {
  const collection = new Collection(store.transactions)
  await addDescent(node, { collection, store, genesis })
  return await collection.parentsFirst()
}

/** The node that a mint left beside the name in output 2: what makes the one genuine makes the other. */
export function mintedBeside(origin: Outpoint, name: string): NodeRecord {
  return { outpoint: { txid: origin.txid, vout: 1 }, domain: name }
}

/**
 * Adds what makes a node genuine to an empty collection: the transaction that left it, the one that left the node which
 * that spends, and so on to genesis. Which input spends a node, the store's records say, never a script.
 *
 * @returns The txid at which it ends before genesis: of a transaction that the store does not hold, or of one that
 * spends no node that it knows. Undefined where it is whole.
 */
async function addDescent(
  node: NodeRecord,
  { collection, store, genesis }: { collection: Collection; store: NodesStore; genesis: Outpoint },
): Promise<string | undefined> {
  const way: { next: NodeRecord | undefined; end?: string } = { next: node }
  // Nodes are walked to before anything else, so that no mint is passed over as what pays for another.
  await collection.addAncestry(node.outpoint.txid, async ({ txid, inputs }) => {
    const left = way.next
    if (left?.outpoint.txid !== txid) return undefined
    way.next = undefined
    if (isSame(left.outpoint, genesis)) return undefined
    way.next = await spentNode(left, inputs, store)
    if (way.next === undefined) way.end = txid
    return way.next?.outpoint.txid
  })
  return way.end ?? way.next?.outpoint.txid
}

/** The node that the mint which left this one spends: of the same domain, or of the one that it extends. */
async function spentNode(
  { outpoint, domain }: NodeRecord,
  inputs: Outpoint[],
  store: NodesStore,
): Promise<NodeRecord | undefined> {
  const spent = outpoint.vout === 0 ? domain : domain.slice(0, -1)
  return (await store.names.genuineNodes(inputs)).find((node) => node.domain === spent)
}

function isSame(one: Outpoint, other: Outpoint): boolean {
  return formatOutpoint(one) === formatOutpoint(other)
}
