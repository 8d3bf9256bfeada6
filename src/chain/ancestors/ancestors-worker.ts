import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import {
  type AncestorCounts,
  type AncestorEntry,
  type AncestorQueue,
  WHOLE_TRANSACTION,
} from '../../../backend/src/graph/ancestor-queue.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { steadyTime } from '../../../backend/src/protocol/monotonic.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { BackgroundJob, type IsMine, pause as pauseFor } from '../sources/background.js'
import type { ChainSource } from '../sources/chain-source.js'
import { FollowError, isOfBranch, isTooLarge } from '../sources/errors.js'
import type { AncestorsStatus } from '../sources/status.js'
import { type Admission, type GatherLimits, gather } from './ancestors.js'

export interface AncestorsWorkerOptions {
  queue: AncestorQueue
  store: Pick<FactStore, 'transactions'>
  source: Pick<ChainSource, 'transaction'>
  /** Verifies a BEEF and passes it to the topics. */
  admit(submitted: { txid: string; beef: Uint8Array }): Promise<Admission>
  /** The most that may be fetched for one ordinal, in total. */
  perOrdinal: GatherLimits
  limits: GatherLimits
  logger: Logger
  /** Whether this process fetches ancestors; by default, it always does. */
  isMine?: IsMine | undefined
  /** The longest transaction to fetch in parallel with others, in bytes; 16 MiB by default. Longer ones are fetched alone. */
  small?: number
  /** The shortest time between two reads of a queue in which nothing is due, in milliseconds; 1000 by default. */
  pause?: number
  /** How long the worker pauses when a source does not answer, in milliseconds; 30,000 by default. */
  rest?: number
  /** The clock; `steadyTime` by default, since due times are stored. */
  now?: () => number
}

/** How many ordinals are worked on at once, and how many entries of each kind are read at once. */
const PARALLEL = 4
const PAGE = 8
/** The longest transaction that is fetched in parallel with others, in bytes. */
const SMALL = 16 * 1024 * 1024
/** The most transactions that place one ordinal before others have their turn. */
const BATCH = 100
/** Delays when nothing was found: the first one, the factor of each further one, and the longest; in milliseconds. */
const FIRST_DELAY = 5000
const DELAY_FACTOR = 4
const MAX_DELAY = 24 * 3_600_000
/** The longest delay if a source did not answer: it may never answer for this transaction. */
const MAX_OUTAGE_DELAY = 600_000
/** The longest time between two reads of the queue, which other processes may fill, in milliseconds. */
const MAX_IDLE = 5000
/** Where the counting of entries stops. */
const MAX_COUNTED = 10_000

/**
 * Fetches the transactions that are missing between stored ordinals and their origins, and admits them: for each ordinal one at a
 * time, back from what is stored. All state is in the store, which says what comes next once a transaction is admitted.
 */
export class AncestorsWorker {
  private readonly job: BackgroundJob
  private readonly branches = pLimit(PARALLEL)
  private counts: AncestorCounts = { waiting: 0, holes: 0 }
  private fetched = 0
  private lastError: AncestorsStatus['lastError']

  private readonly source: TransactionSource
  private readonly large = pLimit(1)

  constructor(private readonly options: AncestorsWorkerOptions) {
    this.source = shared(options.source, () => this.now)
    this.job = new BackgroundJob((signal) => this.round(signal), options.isMine)
  }

  start(): void {
    this.job.start()
  }

  /** Resolves when the store is no longer in use. Pending requests to sources have to end first. */
  async stop(): Promise<void> {
    await this.job.stop()
  }

  /** Call when something was written, to have the queue read again. */
  notify(): void {
    this.job.wake()
  }

  status(): AncestorsStatus {
    const { counts, fetched, lastError } = this
    return { ...counts, fetched, ...(lastError && { lastError }) }
  }

  private get now(): number {
    return (this.options.now ?? steadyTime)()
  }

  private async round(signal: AbortSignal): Promise<number> {
    const { queue, logger, rest = 30_000, pause = 1000 } = this.options
    try {
      const entries = await queue.due({ now: this.now, limit: PAGE })
      const ends = await Promise.allSettled(entries.map((entry) => this.branches(() => this.work(entry))))
      this.counts = await queue.count(MAX_COUNTED)
      const failed = ends.find((end) => end.status === 'rejected')
      // Another source may still answer for the other ordinals.
      if (failed !== undefined && ends.every((end) => end.status === 'rejected')) throw failed.reason
      if (failed !== undefined) this.note(failed.reason)
      if (entries.length > 0) return 0
      const due = await queue.nextDue()
      // Here, so that frequent writes do not cut it short.
      await pauseFor(pause, signal)
      return Math.min((due ?? Number.POSITIVE_INFINITY) - this.now, MAX_IDLE) - pause
    } catch (err) {
      if (signal.aborted) return 0
      this.note(err)
      logger.warn({ err }, 'missing ancestors cannot be fetched; retrying later')
      await pauseFor(rest, signal)
      return 0
    }
  }

  /** Works on an ordinal in parallel with others, or alone if it needs a long transaction. */
  private async work(entry: AncestorEntry): Promise<void> {
    const { limits, small = SMALL } = this.options
    const within = { ...limits, maxBytes: Math.min(limits.maxBytes, small) }
    if ((await this.advance(entry, within)) === 'too large')
      await this.large(() => this.advance(entry, limits))
  }

  /**
   * Fetches and admits the next transaction of an ordinal.
   *
   * @returns 'too large' if it exceeds `limits`, but may be within those of a submission.
   * @throws errors that are not the fault of the ordinal.
   */
  private async advance(entry: AncestorEntry, limits: GatherLimits): Promise<'done' | 'too large'> {
    if (this.job.signal.aborted) return 'done'
    const { perOrdinal } = this.options
    const source = bounded(this.source, {
      maxTransactions: perOrdinal.maxTransactions - entry.fetched.transactions,
      maxBytes: perOrdinal.maxBytes - entry.fetched.bytes,
    })
    let failure: unknown
    let isAdmitted = false
    try {
      failure = await this.admitNext(entry, { source, limits })
      isAdmitted = true
    } catch (error) {
      failure = error
    }
    const mayBeLarger = limits.maxBytes < this.options.limits.maxBytes
    if (source.fetched.transactions === 0 && mayBeLarger && isTooLarge(failure)) return 'too large'
    const { transactions, bytes } = source.fetched
    this.fetched += transactions
    // Everything fetched counts, even if it was refused: otherwise an ordinal that fails each time has no limit.
    const fetched = {
      transactions: entry.fetched.transactions + transactions,
      bytes: entry.fetched.bytes + bytes,
    }
    await this.postpone({ ...entry, fetched }, { isFound: transactions > 0 && isAdmitted, failure })
    return 'done'
  }

  /**
   * Admits the transaction that an ordinal came from, with the transactions that place it there; or the ordinal's own again, with
   * those that say where it came from.
   *
   * @returns Why some of those are missing, unless it is that they are more than a batch.
   * @throws FollowError `NOT_KNOWN` if no source knows the transaction, `REFUSED` if the node refuses it; errors of the source.
   */
  private async admitNext(
    { outpoint, previous }: AncestorEntry,
    { source, limits }: { source: BoundedSource; limits: GatherLimits },
  ): Promise<Error | undefined> {
    const { store, admit } = this.options
    const { txid, vout } = previous ?? outpoint
    const { length = 0 } = store.transactions.raw(txid) ?? {}
    if (previous !== undefined && length > 0) return undefined
    if (length > limits.maxBytes)
      throw new FollowError('TOO_LARGE', `${txid} is longer than ${limits.maxBytes} bytes`)
    const record =
      previous === undefined ? store.transactions.get(txid) : await source.transaction(txid, limits)
    // The ordinal's own transaction may have become inactive.
    if (record === undefined && previous === undefined) return undefined
    if (record === undefined) throw notKnown(txid)
    const { beef, fetched, unknown, failure } = await gather(record, {
      ...{ store, source, limits: { ...limits, maxTransactions: Math.min(limits.maxTransactions, BATCH) } },
      placed: vout === WHOLE_TRANSACTION ? undefined : vout,
    })
    if (previous !== undefined || fetched.length > 0) {
      const admission = await admit({ txid, beef })
      if (admission.kind === 'refused')
        throw new FollowError('REFUSED', `${txid} was refused: ${admission.why}`)
    }
    if (unknown !== undefined) return notKnown(unknown)
    return failure?.code === 'TOO_MANY' ? undefined : failure
  }

  /**
   * Decides when to continue with an ordinal.
   *
   * @param attempt.isFound Whether something was fetched and admitted.
   * @throws the failure if it is not the fault of the ordinal.
   */
  private async postpone(
    entry: AncestorEntry,
    { isFound, failure }: { isFound: boolean; failure: unknown },
  ): Promise<void> {
    const { queue } = this.options
    const isOutage = failure !== undefined && !isOfBranch(failure)
    if (failure !== undefined && !isOutage) this.note(failure)
    const { now } = this
    if (isFound) await queue.postpone({ ...entry, hole: false, tries: 0 }, { due: now })
    else {
      const delay = Math.min(
        FIRST_DELAY * DELAY_FACTOR ** entry.tries,
        isOutage ? MAX_OUTAGE_DELAY : MAX_DELAY,
      )
      const tries = entry.tries + 1
      await queue.postpone({ ...entry, hole: entry.hole || !isOutage, tries }, { due: now + delay })
    }
    if (isOutage) throw failure
  }

  private note(error: unknown): void {
    this.lastError = { at: this.now, message: messageOf(error) }
  }
}

function notKnown(txid: string): FollowError {
  return new FollowError('NOT_KNOWN', `no chain source knows ${txid}, which places an ordinal`)
}

/** How many unknown transactions are remembered. */
const MAX_UNKNOWN = 10_000

type TransactionSource = Pick<ChainSource, 'transaction'>

/**
 * A chain source that is asked once for a transaction that several ordinals need at the same time, and not again for a while if
 * it does not know it: thousands of outputs of one transaction may wait for the same ancestor.
 *
 * @param now A clock, in milliseconds.
 */
function shared(source: TransactionSource, now: () => number): TransactionSource {
  const asked = new LRUCache<string, { at: number; answer: ReturnType<TransactionSource['transaction']> }>({
    maxSize: MAX_UNKNOWN,
    sizeCalculation: () => 1,
  })
  return {
    transaction(txid, limits) {
      const known = asked.get(txid)
      if (known !== undefined && now() - known.at < FIRST_DELAY) return known.answer
      const answer = source.transaction(txid, limits)
      asked.set(txid, { at: now(), answer })
      // A transaction that was found will be stored, so it is not kept in memory.
      const drop = (): boolean => asked.delete(txid)
      answer.then((record) => record && drop(), drop)
      return answer
    },
  }
}

type BoundedSource = TransactionSource & { fetched: { transactions: number; bytes: number } }

/** A chain source that throws a FollowError `TOO_LARGE` beyond the limits. */
function bounded(source: TransactionSource, limits: GatherLimits): BoundedSource {
  const fetched = { transactions: 0, bytes: 0 }
  return {
    fetched,
    async transaction(txid, { maxBytes }) {
      const left = limits.maxBytes - fetched.bytes
      if (fetched.transactions >= limits.maxTransactions || left <= 0)
        throw new FollowError('TOO_LARGE', 'an ordinal has more missing ancestors than MAX_ANCESTORS allows')
      const record = await source.transaction(txid, { maxBytes: Math.min(maxBytes, left) })
      if (record !== undefined) {
        fetched.transactions++
        fetched.bytes += record.raw.length
      }
      return record
    },
  }
}
