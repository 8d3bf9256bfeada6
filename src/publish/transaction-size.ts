import type { PublishOutput } from './inscribe.js'

/** Bytes of an input that spends a P2PKH output, and of a P2PKH change output. */
const P2PKH_INPUT = 148
const P2PKH_OUTPUT = 34
/** Bytes that every transaction has: version, lock time, and the two counts, of 5 bytes at most. */
const TRANSACTION_OVERHEAD = 4 + 4 + 1 + 5
/** Bytes of an output without its script: the value, and the length of the script, which is 5 bytes for most files. */
const OUTPUT_OVERHEAD = 8 + 5

/** The approximate size in bytes of a transaction with P2PKH inputs and one output of change. */
export function transactionSize(transaction: {
  inputs: number
  outputs: readonly Pick<PublishOutput, 'lockingScript'>[]
}): number {
  const fixed = TRANSACTION_OVERHEAD + transaction.inputs * P2PKH_INPUT + P2PKH_OUTPUT
  return transaction.outputs.reduce(
    (sum, { lockingScript }) => sum + OUTPUT_OVERHEAD + lockingScript.length,
    fixed,
  )
}
