import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { Collection } from './collection.js'
import type { GraphReader, NamesReader, TransactionSource } from './graph-store.js'
import type { ListedTransaction } from './listed-beef.js'
import { addHop, type ProvenanceStore } from './provenance.js'
import type { NodeRecord } from './records.js'

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
