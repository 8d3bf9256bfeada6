import type { Outpoint } from '../protocol/outpoint.js'

/**
 * What topics have admitted is kept apart from what is answered of it, the index, which follows from it and from the bytes
 * of transactions. By these two a store finds whether both agree, and makes the index anew (`docs/durability.md`).
 */

/** An output that a topic holds. */
export interface Admitted {
  topic: string
  outpoint: Outpoint
}

/** What was found in a part of a store, which goes on to a txid. */
export interface ComparedPart {
  /** The last txid of the part; undefined where it was the last part. */
  upTo: string | undefined
  /** Held by a topic, and not in the index. */
  missing: Admitted[]
  /** How many outputs the index has beside those that topics hold. */
  extra: number
  /** Transactions that are done for a topic, though their bytes are not there. */
  lost: string[]
}

/** A transaction whose outputs topics hold, as a rebuild comes by it. */
export interface LoggedTransaction {
  txid: string
  raw: Uint8Array
  admitted: Admitted[]
  /** What tells it from those before, for {@link IndexRebuild.arrivals}. */
  place: string
}

export interface IndexComparison {
  /**
   * Compares one part of a store, in the order of txids. Every part is small, so that readers have their turn between.
   *
   * @param after The last txid of the part before; undefined for the first.
   */
  compare(after: string | undefined): Promise<ComparedPart>
  /** Forgets that anything of a transaction was admitted: it may be submitted again, as one that never was. */
  unadmit(txid: string): Promise<void>
}

export interface IndexRebuild {
  /** Does what one process at a time may do to a store that several have. @throws Error where another one is at it. */
  alone(work: () => Promise<void>): Promise<void>
  /** How far a rebuild has come; undefined where none is under way, and the index is whole. */
  rebuild(): Promise<RebuildCheckpoint | undefined>
  /** Sets that durably; with undefined, the rebuild is done. */
  setRebuildCheckpoint(mark: RebuildCheckpoint | undefined): Promise<void>
  /** Empties the index: what follows from bytes, proofs and admissions goes, and nothing else. */
  empty(): Promise<void>
  /** The transactions whose bytes are held in the order in which they came, from behind a place on. */
  transactionLog(after: string): AsyncIterable<LoggedTransaction>
  /** How many there are behind a place. */
  transactionsLeft(after: string): Promise<number>
}

/** A rebuild is `needed`, and nothing of it is done; or it has come to the `place` of an arrival. */
export type RebuildCheckpoint = { state: 'needed' } | { state: 'under way'; place: string }
