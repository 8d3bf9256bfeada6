import { placement } from '../protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { isCoinbase } from '../protocol/transaction.js'
import { parentsOf } from './ancestry.js'
import { Collection } from './collection.js'
import type { GraphReader, TransactionSource } from './graph-store.js'
import type { ListedTransaction } from './listed-beef.js'
import { readOutline, type TransactionOutline } from './transaction-outline.js'

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
