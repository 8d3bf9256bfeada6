import type { State } from '../facts/state.js'
import type { TopicRefusal } from '../graph/admission-rules.js'
import type { Reason } from '../graph/errors.js'
import type { AdmissionRecord, TransactionRecord } from '../graph/records.js'
import { CodedError } from '../protocol/coded-error.js'
import type { Door, RecordTransactions } from './door.js'

export interface Written {
  /** How many earlier transactions became active or inactive. */
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
export type StateMethod = 'hold' | 'release' | 'postpone'

export interface Recorded extends Written {
  /** The outputs that topics admitted, also of transactions that were pending. */
  admitted: AdmissionRecord[]
  /** Why topics admit nothing of a subject, or not one of its outputs. */
  refused: TopicRefusal[]
  /** The subjects that do not count: nothing of them entered the log. */
  lost: { txid: string; reason: Reason }[]
}

/** Where a write stands in the queue. */
export interface Place {
  /** The highest goes first; by default 0, before any submission (`submissionPlace`). */
  priority?: number
  /** About how much there is to write, in bytes. */
  weight?: number
  /** Milliseconds that it may wait behind one write in progress of another thread; by default, as long as it takes. */
  patience?: number
  /** Whether it does not wait for the index. */
  isEarly?: boolean
  /** Used to withdraw it once its patience is over. */
  claim?: SharedArrayBuffer
}

/** How far the writer has come with the log. */
export interface WriterStatus {
  /**
   * `reading`: the copy of a shared log is incomplete. `rebuilding`: the index lacks facts of the log; writes wait. `ended`: the
   * writer's thread was restarted, and has not opened its files yet.
   */
  state: 'reading' | 'rebuilding' | 'equal' | 'ended'
  /** The share of the log that the copy, or the index, has: 0 to 1. */
  done: number
  /** Whether the index was emptied, so that readers have none until it is equal. */
  isEmptied?: boolean
  /** For a shared log: when it was last read to its end (`steadyTime`). */
  heardAt?: number
  /** For a shared log: the jobs that this gateway does for all. */
  jobs?: readonly string[]
  /** For a shared log: why this gateway writes nothing any more, until it is restarted. */
  outdated?: string
  /** For a shared log: a warning for the operator. */
  warning?: string
}

/**
 * The one door to the log, for all writes of a process. Promises resolve once the facts are synced to disk and the index has
 * them, so that a read that begins then finds them.
 */
export interface Writer {
  /**
   * Stores transactions with their verified proofs, and pending ones that now count.
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
  /** For a shared log: seeks these jobs and no others (`WriterStatus.jobs`), and learns how far other gateways have come with them. */
  seekJobs(jobs: readonly string[]): Promise<void>
  readonly status: WriterStatus
  /** Resolves when the copy of a shared log is complete, so that its settings are known. */
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

/** A write waited too long behind another one. Nothing was stored, and it may be tried again. */
export class WriterBusyError extends CodedError {
  override readonly name = 'WriterBusyError'
  readonly code = 'WRITER_BUSY'

  constructor(waited: number) {
    super(`other writes kept this one waiting for ${waited} ms; try again`)
  }
}
