import { formatOutpoint } from '../protocol/outpoint.js'
import type { TransactionView } from '../protocol/transaction.js'
import { memoizeByObject } from './memoize-by-object.js'
import type { BeefContents } from './read-beef.js'
import { admittedTransactions } from './transaction-records.js'

/**
 * What makes an unproven transaction of a BEEF one that no block can hold, though every script in it may pass: a
 * verifier that runs scripts input by input says yes to a transaction without any, and counts a coin that is spent twice
 * in it twice. Undefined where nothing does. What a merkle path proves, the chain has judged. Worked out once for a BEEF:
 * the host asks, and each of its topics.
 */
export const unsoundness = memoizeByObject((beef: BeefContents): string | undefined => {
  for (const { txid, proof } of admittedTransactions(beef)) {
    const transaction = proof === undefined ? beef.transaction(txid) : undefined
    const reason = transaction && reasonAgainst(transaction)
    if (reason !== undefined) return `${txid} ${reason}`
  }
  return undefined
})

function reasonAgainst({ inputs, outputs }: TransactionView): string | undefined {
  if (inputs.length === 0) return 'has no inputs'
  if (outputs.length === 0) return 'has no outputs'
  if (new Set(inputs.map(formatOutpoint)).size < inputs.length) return 'spends the same output twice'
  return undefined
}
