import { type Predecessor, predecessorsOf } from '../protocol/ordinal-flow.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { isCoinbase, type TransactionView } from '../protocol/transaction.js'
import type { TransactionReader } from './graph-store.js'
import type { BeefContents } from './read-beef.js'
import type { SpendRecord } from './records.js'
import { storedTransaction } from './stored-transaction.js'

/** How 1-sat coins flow through a transaction (BRC-159). */
export interface Flow {
  /** Satoshis of each input; undefined where neither the BEEF nor the store holds what it spends. */
  inputValues: (number | undefined)[]
  /** For each output, the input whose coin it continues. */
  predecessors: Predecessor[]
}

/** Its one input spends no coin that an output could continue. */
const OF_COINBASE = [0]

/** The flow through a transaction, by the values that are known of what it spends. */
export function flowBy({ inputs, outputs }: TransactionView, spends: SpendRecord[]): Flow {
  const values = new Map(spends.map(({ outpoint, satoshis }) => [formatOutpoint(outpoint), satoshis]))
  const inputValues = isCoinbase({ inputs })
    ? OF_COINBASE
    : inputs.map((input) => values.get(formatOutpoint(input)))
  const outputValues = outputs.map(({ satoshis }) => satoshis)
  return { inputValues, predecessors: predecessorsOf({ inputValues, outputValues }) }
}

const known = new WeakMap<BeefContents, Promise<Flow>>()

/** The flow through the subject of a BEEF; worked out once, whoever asks. */
export function flowOf(beef: BeefContents, store: TransactionReader | undefined): Promise<Flow> {
  const told = known.get(beef)
  if (told !== undefined) return told
  const flow = workOut(beef, store)
  known.set(beef, flow)
  // A store that failed once may answer the next time.
  flow.catch(() => known.delete(beef))
  return flow
}

async function workOut(beef: BeefContents, store: TransactionReader | undefined): Promise<Flow> {
  const { inputs, outputs } = beef.subject
  if (isCoinbase({ inputs })) return flowBy(beef.subject, [])
  const inputValues: (number | undefined)[] = []
  for (const { txid, vout } of inputs) {
    const source = beef.transaction(txid) ?? (await storedTransaction(txid, store))
    inputValues.push(source?.outputs[vout]?.satoshis)
  }
  const outputValues = outputs.map(({ satoshis }) => satoshis)
  return { inputValues, predecessors: predecessorsOf({ inputValues, outputValues }) }
}
