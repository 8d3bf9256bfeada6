import type { LookupFormula } from '@bsv/overlay'
import type { ListedTransaction } from '../graph/listed-beef.js'
import { readBeef } from '../graph/read-beef.js'

/** An output of a formula, and where its history was asked for, what that is. */
export type AnsweringOutput = LookupFormula[number] & {
  /** For a host that puts BEEF together itself: all that is to be in it, parents first, the output's own transaction last. */
  transactions?: ListedTransaction[]
}

/**
 * An output with its history. An engine that follows the coins which its topics hold is told by `history` which of them
 * belong to it; how far it gets is the engine's affair.
 */
export function withHistory(output: AnsweringOutput, transactions: ListedTransaction[]): AnsweringOutput {
  const txids = new Set(transactions.map(({ txid }) => txid))
  return { ...output, transactions, history: async (beef) => txids.has(readBeef(beef).subject.txid) }
}
