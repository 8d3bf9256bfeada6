import type { LookupFormula } from '@bsv/overlay'
import { readBeef } from '../graph/read-beef.js'
import type { ListedTransaction } from '../graph/write-beef.js'

/** A store as a host reads it for one answer: it may let others come between reads, or end them where nobody waits. */
export type Reading = <Store extends object>(store: Store) => Store

/** Lists all that is to be in the BEEF of an output, parents first, the output's own transaction last. */
export type ReadHistory = (reading: Reading) => Promise<ListedTransaction[]>

/** An output of a formula, and where its history was asked for, what that is. */
export type AnsweringOutput = LookupFormula[number] & {
  /** For a host that puts BEEF together itself. */
  transactions?: ReadHistory
}

/**
 * An output with its history, which is read when it is asked for. An engine that follows the coins which its topics hold
 * is told by `history` which of them belong to it; how far it gets is the engine's affair.
 */
export function withHistory(output: AnsweringOutput, transactions: ReadHistory): AnsweringOutput {
  let txids: Promise<Set<string>> | undefined
  return {
    ...output,
    transactions,
    history: async (beef) => {
      txids ??= transactions((store) => store).then((all) => new Set(all.map(({ txid }) => txid)))
      return (await txids).has(readBeef(beef).subject.txid)
    },
  }
}
