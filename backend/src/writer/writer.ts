import type { State } from '../facts/state.js'
import type { TopicRefusal } from '../graph/admission-rules.js'
import type { Reason } from '../graph/errors.js'
import type { AdmissionRecord, TransactionRecord } from '../graph/records.js'
import { CodedError } from '../protocol/coded-error.js'
import type { Door, RecordTransactions } from './door.js'

export interface Written {
  /** How many transactions that were there before became active or inactive. */
  reorganised: number
}

export interface Changed<Method extends DoorMethod> extends Written {
  result: ReturnType<Door[Method]>
}

export type DoorMethod =
  | 'disprove'
  | 'sightings'
  | 'block'
  | 'unblock'
  | 'evict'
  | 'replaceHeaders'
  | 'addHeadersBelow'
  | 'clearHeaders'
export type StateMethod = 'interaction' | 'hold' | 'release' | 'postpone'

export interface Recorded extends Written {
  /** The outputs that topics hold because of them, also of transactions that were pending. */
  admitted: AdmissionRecord[]
  /** Why topics admit nothing of a subject, or not one of its outputs. */
  refused: TopicRefusal[]
  /** The subjects that do not count: nothing of them entered the log. */
  lost: { txid: string; reason: Reason }[]
}

/** Where a write stands in the queue. */
export interface Place {
  /** The highest goes first; by default 0, before any submission (`submissionPriority`). */
  priority?: number
  /** About how much there is to write, in bytes. */
  weight?: number
  /** For how many milliseconds it may wait behind one write in progress; by default, as long as it takes. */
  patience?: number
  /** Whether it does not wait for the index. */
  isEarly?: boolean
  /** Set by what withdraws it once its patience is over. */
  claim?: { begin(): boolean }
}

/** How the writer stands to the log. */
export interface WriterStatus {
  /**
   * `reading`: the copy of a log that others write is not complete yet. `rebuilding`: the index does not have all facts of the log
   * yet. Writes wait. `ended`: the thread of the writer was started again, and has not opened its files yet.
   */
  state: 'reading' | 'rebuilding' | 'equal' | 'ended'
  /** How much the copy, or the index, has of the log: 0 to 1. */
  done: number
  /** Whether the index was emptied, so that readers have nothing until it is equal. */
  isEmptied?: boolean
  /** Of a log that others write, too: when it was last read to its end (`steadyTime`). */
  heardAt?: number
  /** Of such a log: which jobs this gateway does for all of them. */
  jobs?: readonly string[]
  /** Of such a log: what its operator should know. */
  warning?: string
}

/**
 * The one door to the log: every write of a process. A promise is resolved once the facts are synced to disk and the index has
 * them, so that a read that begins then finds them.
 */
export interface Writer {
  /**
   * Stores transactions with their proofs, which are verified, and whatever was pending and now counts.
   *
   * @throws WriterBusyError if it waited longer than its patience: nothing was stored.
   */
  record(
    transactions: readonly TransactionRecord[],
    options?: RecordTransactions,
    place?: Place,
  ): Promise<Recorded>
  /** Changes facts by a method of the door. */
  change<Method extends DoorMethod>(
    method: Method,
    ...args: Parameters<Door[Method]>
  ): Promise<Changed<Method>>
  /** Writes beside the facts, by a method of the state. */
  note<Method extends StateMethod>(method: Method, ...args: Parameters<State[Method]>): Promise<void>
  /** As `Settings.set`. */
  setting(name: string, value: string, from?: string): Promise<Written>
  /**
   * Of a log that others write, too: has this gateway do these jobs when no other one does (`WriterStatus.jobs`), and no others, and
   * know how far others have come with them.
   */
  seekJobs(jobs: readonly string[]): Promise<void>
  readonly status: WriterStatus
  /** Resolves when the copy of a log that others write is complete: then its settings are known. */
  readonly logRead: Promise<void>
  /** Why nothing can be written any more: the thread of the writer has ended. */
  readonly failure?: Error | undefined
  /** Raised after each commit, before the writes in it are answered. */
  readonly commits: { readonly value: number }
  /** Resolves when the index has all facts of the log. */
  readonly opened: Promise<void>
  close(): Promise<void>
}

export function submittedBytes(transactions: readonly TransactionRecord[]): number {
  return transactions.reduce((sum, { raw }) => sum + raw.length, 0)
}

/** One write holds the writer for long; nothing was stored of another that waited, and it may be tried again. */
export class WriterBusyError extends CodedError {
  override readonly name = 'WriterBusyError'
  readonly code = 'WRITER_BUSY'

  constructor(waited: number) {
    super(`other writes kept this one waiting for ${waited} ms; try again`)
  }
}
