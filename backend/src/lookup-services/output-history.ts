import { readBeef } from '../graph/read-beef.js'
import type { AnsweringOutput, ReadHistory, Reading } from '../read/answering-service.js'

/** Wraps nothing. */
const AT_ONCE = { over: <Store>(store: Store) => store, overRole: <Role>(role: Role) => role } as Reading

/**
 * An output with its history, which is read lazily. For an engine that follows the coins of its topics, `history` selects
 * those that belong to it; how far it gets is the engine's affair.
 */
export function withHistory(output: AnsweringOutput, transactions: ReadHistory): AnsweringOutput {
  let txids: Promise<Set<string>> | undefined
  return {
    ...output,
    transactions,
    history: async (beef) => {
      txids ??= transactions(AT_ONCE).then((all) => new Set(all.transactions.map(({ txid }) => txid)))
      return (await txids).has(readBeef(beef).subject.txid)
    },
  }
}
