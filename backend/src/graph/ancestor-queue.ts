import type { Outpoint } from '../protocol/outpoint.js'

/** As the output of an entry: a transaction, none of whose outputs is placed yet. No transaction has an output of that index. */
export const WHOLE_TRANSACTION = 0xffffffff

/**
 * The ordinals whose origin is unknown, as their history has a hole: for each incomplete lineage, its first output. And each
 * transaction that spends an ordinal, if what it does with it follows from values that are not known yet. The store derives
 * the entries from the graph, in the same writes, so that they cannot disagree with it. An entry lasts until something
 * arrives in front of its output, or the transaction is placed.
 */
export interface AncestorEntry {
  /** The first output of the lineage that is stored; or the transaction, with {@link WHOLE_TRANSACTION}. */
  outpoint: Outpoint
  /** The 1-sat coin that it received; undefined if that follows from a value that is not known yet. */
  previous?: Outpoint
  /** Whether nothing more can be done for it: no source has what is missing, or it exceeds the limits. */
  hole: boolean
  /** How often in a row nothing was found. */
  tries: number
  /** What was fetched for the lineage so far: transactions, and their raw bytes. */
  fetched: { transactions: number; bytes: number }
}

export interface AncestorCounts {
  waiting: number
  holes: number
}

export interface AncestorQueue {
  /**
   * Entries whose time has come, up to `limit` of each kind: of those never tried the oldest and the newest, of those that were
   * tried the ones that wait longest, and of holes. Strangers may add any number, and no kind keeps the others out: what comes
   * after a flood does not wait for its end.
   */
  due(query: { now: number; limit: number }): Promise<AncestorEntry[]>
  /** When the next entry is due, in milliseconds since 1970; undefined if there is none. */
  nextDue(): Promise<number | undefined>
  /** Counts entries, each kind up to `limit`. */
  count(limit: number): Promise<AncestorCounts>
  /**
   * Notes the result of an attempt with the entry that the lineage of `entry.outpoint` has by now, if it has one. If it is not
   * known which coin the output received, the result is that of all such outputs of its transaction: they wait for the same
   * value of an input.
   *
   * @param next.due When to try again, in milliseconds since 1970.
   */
  postpone(entry: AncestorEntry, next: { due: number }): Promise<void>
  /** Whether the origin of an output is unknown, and something can still be done for it. */
  isWaiting(outpoint: Outpoint): Promise<boolean>
  /** Whether it is unknown where the ordinals went that a transaction spends, and something can still be done for it. */
  isUnplaced(txid: string): boolean
}
