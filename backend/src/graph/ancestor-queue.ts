import type { Outpoint } from '../protocol/outpoint.js'

/** The output index of an entry that stands for a whole transaction, none of whose outputs is placed yet. No output has this index. */
export const WHOLE_TRANSACTION = 0xffffffff

/**
 * An ordinal whose origin is unknown, as its history has a hole: the first output of an incomplete lineage. Or a transaction that
 * spends an ordinal whose new place depends on values that are not known yet. The store derives entries from the graph, in the
 * same writes, so the two cannot disagree. An entry lasts until the coin before its output arrives, or the transaction is placed.
 */
export interface AncestorEntry {
  /** The first output of the lineage that is stored; or the transaction, with {@link WHOLE_TRANSACTION}. */
  outpoint: Outpoint
  /** The 1-sat coin that it received; undefined if that depends on an unknown value. */
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
   * Entries that are due, up to `limit` of each kind: the oldest and the newest of those never tried, those tried before that wait
   * longest, and holes. Anybody may add any number, but no kind keeps the others out: entries after a flood do not wait for its end.
   */
  due(query: { now: number; limit: number }): Promise<AncestorEntry[]>
  /** When the next entry is due, in milliseconds since 1970; undefined if there is none. */
  nextDue(): Promise<number | undefined>
  /** Counts entries, each kind up to `limit`. */
  count(limit: number): Promise<AncestorCounts>
  /**
   * Stores the result of an attempt in the current entry of the lineage of `entry.outpoint`, if it has one. If the coin that the
   * output received is unknown, the result applies to all such outputs of its transaction: they wait for the same input value.
   *
   * @param next.due When to try again, in milliseconds since 1970.
   */
  postpone(entry: AncestorEntry, next: { due: number }): Promise<void>
  /** Whether the origin of an output is unknown, and something can still be done for it. */
  isWaiting(outpoint: Outpoint): Promise<boolean>
  /** Whether a transaction spends ordinals whose new place is unknown, and something can still be done about it. */
  isUnplaced(txid: string): boolean
}
