import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import {
  type AncestorCounts,
  type AncestorEntry,
  type AncestorQueue,
  WHOLE_TRANSACTION,
} from '../../../backend/src/graph/ancestor-queue.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { steadyTime } from '../../../backend/src/protocol/monotonic.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { ChainSource } from '../sources/chain-source.js'
import { FollowError, isOfBranch, isTooLarge, type LastError } from '../sources/errors.js'
import { type Admission, type GatherLimits, gather } from './ancestors.js'
import { type IsMine, untilMine } from './is-mine.js'

export interface AncestorsWorkerOptions {
  queue: AncestorQueue
  store: Pick<FactStore, 'transactions'>
  source: Pick<ChainSource, 'transaction'>
  /** Verifies a BEEF and passes it to the topics. */
  admit(submitted: { txid: string; beef: Uint8Array }): Promise<Admission>
  /** What may be fetched for one ordinal, in total. */
  perOrdinal: GatherLimits
  limits: GatherLimits
  logger: Logger
  /** Whether it is this process that fetches them; by default, it always is. */
  isMine?: IsMine | undefined
  /** The longest transaction that is fetched beside others, in bytes; 16 MiB by default. A longer one is fetched alone. */
  small?: number
  /** The least time between two looks at a queue in which nothing is due, in milliseconds; 1000 by default. */
  pause?: number
  /** How long the worker rests when a source does not answer, in milliseconds; 30,000 by default. */
  rest?: number
  /** As `steadyTime` by default: what is due is stored. */
  now?: () => number
}

export interface AncestorsStatus {
  /** Ordinals whose missing ancestors are on the way. */
  waiting: number
  /** Transactions fetched since the start. */
  fetched: number
  /** Ordinals for which no source has what is missing, or that exceed the limits. */
  holes: number
  lastError?: LastError
}

/** How many ordinals are worked on at once, and how many entries are read at once of each kind. */
const PARALLEL = 4
const PAGE = 8
/** The longest transaction that is fetched while others are, in bytes. */
const SMALL = 16 * 1024 * 1024
/** Of how many transactions at most an ordinal is placed at once, before others have their turn. */
const BATCH = 100
/** When nothing was found: the first delay, the factor of each further one, and the longest; in milliseconds. */
const FIRST_DELAY = 5000
const DELAY_FACTOR = 4
const MAX_DELAY = 24 * 3_600_000
/** The longest delay if a source did not answer: it may be that it never does for this transaction. */
const MAX_OUTAGE_DELAY = 600_000
/** The longest time between two looks at the queue, which other processes may fill, in milliseconds. */
const MAX_IDLE = 5000
/** Entries are counted up to here. */
const MAX_COUNTED = 10_000

/**
 * Fetches what is missing between stored ordinals and their origins, and admits it, one transaction of an ordinal at a time, back
 * from what is stored. All state is in the store, which says what comes next once a transaction is admitted.
 */
export class AncestorsWorker {
  private readonly stopping = new AbortController()
  private readonly branches = pLimit(PARALLEL)
  private running: Promise<void> | undefined
  private noticed = new AbortController()
  private counts: AncestorCounts = { waiting: 0, holes: 0 }
  private fetched = 0
  private lastError: AncestorsStatus['lastError']

  private readonly source: SharedSource
  private readonly large = pLimit(1)

  constructor(private readonly options: AncestorsWorkerOptions) {
    this.source = new SharedSource(options.source, { forget: FIRST_DELAY, now: () => this.now })
  }

  start(): void {
    this.running ??= this.run()
  }

  /** Resolves when it no longer uses the store. Requests to sources that are under way have to end. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await this.running
  }

  /** Something was written: it looks at the queue. */
  notify(): void {
    this.noticed.abort()
  }

  status(): AncestorsStatus {
    const { counts, fetched, lastError } = this
    return { ...counts, fetched, ...(lastError && { lastError }) }
  }

  private get now(): number {
    return (this.options.now ?? steadyTime)()
  }

  private async run(): Promise<void> {
    const { queue, logger, rest = 30_000, pause = 1000 } = this.options
    const { signal } = this.stopping
    while (!signal.aborted) {
      await untilMine(this.options.isMine, signal)
      this.noticed = new AbortController()
      try {
        const entries = await queue.due({ now: this.now, limit: PAGE })
        const ends = await Promise.allSettled(entries.map((entry) => this.branches(() => this.work(entry))))
        this.counts = await queue.count(MAX_COUNTED)
        const failed = ends.find((end) => end.status === 'rejected')
        // A source may answer for other ordinals.
        if (failed !== undefined && ends.every((end) => end.status === 'rejected')) throw failed.reason
        if (failed !== undefined) this.note(failed.reason)
        if (entries.length > 0) continue
        const due = await queue.nextDue()
        await unlessStopped(pause, signal)
        const idle = Math.min((due ?? Number.POSITIVE_INFINITY) - this.now, MAX_IDLE) - pause
        await unlessStopped(Math.max(0, idle), AbortSignal.any([signal, this.noticed.signal]))
      } catch (err) {
        if (signal.aborted) return
        this.note(err)
        logger.warn({ err }, 'missing ancestors cannot be fetched; retrying later')
        await unlessStopped(rest, signal)
      }
    }
  }

  /** Works on an ordinal beside others, or alone if that takes a long transaction. */
  private async work(entry: AncestorEntry): Promise<void> {
    const { limits, small = SMALL } = this.options
    const within = { ...limits, maxBytes: Math.min(limits.maxBytes, small) }
    if ((await this.advance(entry, within)) === 'too large')
      await this.large(() => this.advance(entry, limits))
  }

  /**
   * Fetches and admits the next transaction of an ordinal.
   *
   * @returns 'too large' if that cannot be done within `limits`, but may be within those of a submission.
   * @throws errors that are not the fault of the ordinal.
   */
  private async advance(entry: AncestorEntry, limits: GatherLimits): Promise<'done' | 'too large'> {
    if (this.stopping.signal.aborted) return 'done'
    const { perOrdinal } = this.options
    const source = new BoundedSource(this.source, {
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
    // What was fetched counts, whatever became of it: otherwise an ordinal that fails each time has no limit.
    const fetched = {
      transactions: entry.fetched.transactions + transactions,
      bytes: entry.fetched.bytes + bytes,
    }
    await this.postpone({ ...entry, fetched }, { isFound: transactions > 0 && isAdmitted, failure })
    return 'done'
  }

  /**
   * Admits the transaction that an ordinal came from, with those that place it there; or its own again, with those that say where
   * it came from.
   *
   * @returns Why some of those are missing, if that is not because they are more than a batch.
   * @throws FollowError `NOT_KNOWN` if no source knows it, `REFUSED` if the node refuses it; errors of the source.
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
    // Its own transaction may not count any more.
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
   * Decides when to go on.
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

async function unlessStopped(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal, ref: false }).catch(() => {})
}

/** How many transactions are remembered that no source knows. */
const MAX_UNKNOWN = 10_000

/**
 * A chain source that is asked once for a transaction that several ordinals need at the same time, and that is not asked again
 * for a while for one that it did not know: a transaction may have thousands of outputs that wait for the same one.
 */
class SharedSource implements Pick<ChainSource, 'transaction'> {
  private readonly asked = new LRUCache<
    string,
    { at: number; answer: Promise<TransactionRecord | undefined> }
  >({
    max: MAX_UNKNOWN,
  })

  /**
   * @param options.forget After how many milliseconds it is asked again.
   * @param options.now A clock, in milliseconds.
   */
  constructor(
    private readonly source: Pick<ChainSource, 'transaction'>,
    private readonly options: { forget: number; now: () => number },
  ) {}

  transaction(txid: string, limits: { maxBytes: number }): Promise<TransactionRecord | undefined> {
    const { forget, now } = this.options
    const known = this.asked.get(txid)
    if (known !== undefined && now() - known.at < forget) return known.answer
    const answer = this.source.transaction(txid, limits)
    this.asked.set(txid, { at: now(), answer })
    // What is found will be stored, and is not kept in memory.
    const drop = (): boolean => this.asked.delete(txid)
    answer.then((record) => record && drop(), drop)
    return answer
  }
}

class BoundedSource implements Pick<ChainSource, 'transaction'> {
  readonly fetched = { transactions: 0, bytes: 0 }

  constructor(
    private readonly source: Pick<ChainSource, 'transaction'>,
    private readonly limits: GatherLimits,
  ) {}

  /** @throws FollowError `TOO_LARGE` beyond the limit. */
  async transaction(
    txid: string,
    { maxBytes }: { maxBytes: number },
  ): Promise<TransactionRecord | undefined> {
    const { fetched, limits } = this
    const left = limits.maxBytes - fetched.bytes
    if (fetched.transactions >= limits.maxTransactions || left <= 0)
      throw new FollowError('TOO_LARGE', 'an ordinal has more missing ancestors than MAX_ANCESTORS allows')
    const record = await this.source.transaction(txid, { maxBytes: Math.min(maxBytes, left) })
    if (record !== undefined) {
      fetched.transactions++
      fetched.bytes += record.raw.length
    }
    return record
  }
}
