import type { Outpoint } from '../protocol/outpoint.js'

/**
 * The index, which answers reads, follows from what topics admitted and from the bytes of transactions. These ports compare
 * the index with the admitted set and rebuild it (`docs/durability.md`).
 */

/** An output that a topic holds. */
export interface Admitted {
  topic: string
  outpoint: Outpoint
}

/** The result of comparing one part of the store: a range of txids. */
export interface ComparedPart {
  /** The last txid of the part; undefined if this was the last part. */
  upTo: string | undefined
  /** Held by a topic but not in the index. */
  missing: Admitted[]
  /** How many outputs the index has that no topic holds. */
  extra: number
  /** Transactions marked as applied to a topic whose bytes are missing. */
  lost: string[]
}

/** A stored transaction as a rebuild reads it. */
export interface LoggedTransaction {
  txid: string
  raw: Uint8Array
  admitted: Admitted[]
  /** Its position in insertion order, for {@link IndexRebuild.transactionLog}. */
  place: string
}

export interface IndexComparison {
  /**
   * Compares one part of the store, in txid order. Parts are small, so that reads run in between.
   *
   * @param after The last txid of the previous part; undefined for the first.
   */
  compare(after: string | undefined): Promise<ComparedPart>
  /** Deletes all admissions of a transaction, so that it can be submitted again. */
  unadmit(txid: string): Promise<void>
  /** Counts names, inscriptions and transactions again (`ListingsReader.counts`): rows were lost, or came another way. */
  recount(): Promise<void>
}

export interface IndexRebuild {
  /** Runs work that only one process at a time may do. @throws Error if another process is doing it. */
  alone(work: () => Promise<void>): Promise<void>
  /** How far the rebuild has come; undefined if the index is complete. */
  rebuild(): Promise<RebuildCheckpoint | undefined>
  /** Stores it durably; undefined marks the rebuild as done. */
  setRebuildCheckpoint(checkpoint: RebuildCheckpoint | undefined): Promise<void>
  /** Empties the index: everything that follows from bytes, proofs and admissions, and nothing else. */
  empty(): Promise<void>
  /** The stored transactions in insertion order, after a position; an empty one is before all. */
  transactionLog(after: string): AsyncIterable<LoggedTransaction>
  /** How many there are after a position. */
  transactionsLeft(after: string): Promise<number>
}

/** A rebuild is `needed` and has not started, or has come to the `place` of a transaction in insertion order. */
export type RebuildCheckpoint = { state: 'needed' } | { state: 'under way'; place: string }
