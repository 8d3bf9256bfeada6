import { type Predecessor, predecessorsOf } from '../protocol/ordinal-flow.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { firstOutputs, isCoinbase, outputOf, type TransactionView } from '../protocol/transaction.js'
import type { TransactionSource } from './graph-store.js'
import type { BeefContents } from './read-beef.js'
import type { SpendRecord } from './records.js'
import { storedTransaction } from './stored-transaction.js'

/**
 * How many outputs of a transaction `tm_ordinals` looks at, the first ones: each that it admits takes some kilobytes while it
 * is written. What stands behind them is no ordinal here; a name is, as the covenant puts it into output 2.
 */
export const OUTPUTS_WITH_ORDINALS = 100_000

/** How 1-sat coins flow through a transaction (BRC-159). */
export interface Flow {
  /** Satoshis of each input; undefined where neither the BEEF nor the store holds what it spends. */
  inputValues: (number | undefined)[]
  /** For each output that is looked at, the input whose coin it continues. */
  predecessors: Predecessor[]
}

/** Its one input spends no coin that an output could continue. */
const OF_COINBASE = [0]

/** The flow through a transaction, by the values that are known of what it spends. */
export function flowBy(transaction: TransactionView, spends: SpendRecord[]): Flow {
  const { inputs } = transaction
  const values = new Map(spends.map(({ outpoint, satoshis }) => [formatOutpoint(outpoint), satoshis]))
  const inputValues = isCoinbase({ inputs })
    ? OF_COINBASE
    : inputs.map((input) => values.get(formatOutpoint(input)))
  return flowOfValues(transaction, inputValues)
}

/** Through the outputs that `tm_ordinals` looks at. */
function flowOfValues(transaction: TransactionView, inputValues: Flow['inputValues']): Flow {
  const outputValues = firstOutputs(transaction, OUTPUTS_WITH_ORDINALS).map(({ satoshis }) => satoshis)
  return { inputValues, predecessors: predecessorsOf({ inputValues, outputValues }) }
}

const known = new WeakMap<BeefContents, Promise<Flow>>()

/** The flow through the subject of a BEEF; worked out once, whoever asks. */
export function flowOf(beef: BeefContents, store: TransactionSource | undefined): Promise<Flow> {
  const told = known.get(beef)
  if (told !== undefined) return told
  const flow = workOut(beef, store)
  known.set(beef, flow)
  // A store that failed once may answer the next time.
  flow.catch(() => known.delete(beef))
  return flow
}

async function workOut(beef: BeefContents, store: TransactionSource | undefined): Promise<Flow> {
  const { inputs } = beef.subject
  if (isCoinbase({ inputs })) return flowBy(beef.subject, [])
  const inputValues: (number | undefined)[] = []
  for (const { txid, vout } of inputs) {
    const source = beef.transaction(txid) ?? (await storedTransaction(txid, store))
    inputValues.push(source && outputOf(source, vout)?.satoshis)
  }
  return flowOfValues(beef.subject, inputValues)
}
