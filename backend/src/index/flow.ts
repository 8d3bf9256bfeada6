import { OUTPUTS_WITH_ORDINALS } from '../graph/transaction-records.js'
import { type Predecessor, predecessorsOf } from '../protocol/ordinal-flow.js'
import { firstOutputs, isCoinbase, type TransactionView } from '../protocol/transaction.js'
import type { Input } from './transactions.js'

/** The one input of a coinbase spends no coin that an output could continue. */
const OF_COINBASE = [0]

/** For each output that is considered, the input whose 1-sat coin it received (BRC-159). */
export function flowOf(view: TransactionView, inputs: readonly Input[]): Predecessor[] {
  return predecessorsOf({
    inputValues: isCoinbase(view) ? OF_COINBASE : inputs.map(({ value }) => value),
    outputValues: firstOutputs(view, OUTPUTS_WITH_ORDINALS).map(({ satoshis }) => satoshis),
  })
}
