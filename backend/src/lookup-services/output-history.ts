import type { Paced, PacedStore } from '../graph/graph-store.js'
import type { LookupFormula } from '../graph/overlay-interfaces.js'
import type { Part } from '../graph/provenance.js'
import { readBeef } from '../graph/read-beef.js'

/** Wraps a store, or a role of one, for one answer: the host may yield between reads, or abort them when the client has left. */
export interface Reading {
  over<Store extends object>(store: Store): PacedStore<Store>
  overRole<Role extends object>(role: Role): Paced<Role>
}

/** Wraps nothing. */
const AT_ONCE = { over: <Store>(store: Store) => store, overRole: <Role>(role: Role) => role } as Reading

/** Lists everything for the BEEF of an output, or of an earlier one on the way to it if a part is asked for. */
export type ReadHistory = (reading: Reading) => Promise<Part>

/** An output of a formula, with its history if that was requested. */
export type AnsweringOutput = LookupFormula[number] & {
  /** For a host that assembles BEEF itself. */
  transactions?: ReadHistory
}

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
