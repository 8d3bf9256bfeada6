import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { FrontierCoin } from '../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { BranchFollower, type BranchOptions, type FollowReport } from './branch.js'
import { FollowError, isOfBranch, isOutage, type LastError } from './errors.js'
import { Retries } from './retries.js'
import { type FollowedOrdinals, Sweep, type SweptStore } from './sweep.js'
import { WorkQueue } from './work-queue.js'

export interface FollowerOptions extends Omit<BranchOptions, 'node' | 'isFollowed'> {
  node: Omit<BranchOptions['node'], 'store'> & { store: SweptStore }
  /** How many coins are asked about at once. */
  parallel: number
  /** Milliseconds from the end of one sweep to the next, if no block starts it earlier. */
  pollInterval: number
  logger: Logger
}

export interface FollowStatus {
  state: 'catching up' | 'keeping up'
  ordinals: FollowedOrdinals
  /** Admitted since the start. */
  mints: number
  transfers: number
  /** The height of the chain up to which everything that is followed was asked about. */
  height?: number
  /** Coins asked about in the current sweep, and about how many there are. */
  sweep: { asked: number; coins: number }
  /** Unproven transactions that wait for a proof. */
  unproven: number
  /** Branches that could not be followed since the start, counting every try. */
  failures: number
  lastError?: LastError
}

/** What to ask the source about: what spends a coin, or whether an unproven transaction is mined by now. */
type Task = FrontierCoin | { kind: 'unproven'; txid: string }

/** How many coins are remembered as asked about since the last block, so that none is asked about twice. */
const MAX_ASKED = 100_000
/** After how many coins the place of the rotation is stored. */
const SAVE_EVERY = 500
/** How many sweeps a command makes at least if something fails. */
const SWEEPS_WITH_FAILURES = 3
/** How long nothing is asked after the source or the node did not answer, in milliseconds; it doubles each time. */
const FIRST_PAUSE = 1000
const MAX_PAUSE = 60_000

/**
 * Follows the name tree and ordinals along the chain: asks a chain source what spends each live node and each tip, admits what
 * it finds with its ancestors, and continues from there to the end (`docs/follow.md`). What to ask is read from the store, so
 * it continues after a restart. In what order transactions are admitted does not matter (`docs/submissions.md`).
 */
export class Follower {
  private readonly sweeping: Sweep
  private readonly branches: BranchFollower
  private readonly retries: Retries<Task>
  private readonly queue: WorkQueue<Task>
  private readonly stopping = new AbortController()
  private readonly asked = new Set<string>()
  private running: Promise<void> | undefined
  /** The coins of the rotation so far. */
  private rotated = 0
  /** The coins that the current sweep, and the last one, asked about. */
  private swept = { asked: 0, last: 0 }
  private tip: number | undefined
  private sweptHeight: number | undefined
  private hasCaughtUp = false
  /** Whether something happened after which the latest coins, unproven transactions and failures are due first. */
  private isUrgent = true
  private again: NodeJS.Timeout | undefined
  private pause = { until: 0, length: 0 }
  private lastError: LastError | undefined
  /** Set if it runs once, as a command: then an error that would make it wait ends it. */
  private onFatal: ((error: unknown) => void) | undefined

  constructor(private readonly options: FollowerOptions) {
    const { node, ordinals, parallel, pollInterval } = options
    this.sweeping = new Sweep(node.store, ordinals)
    this.branches = new BranchFollower({
      ...options,
      isFollowed: (outpoint) => this.sweeping.isFollowed(outpoint),
    })
    this.retries = new Retries(pollInterval)
    this.queue = new WorkQueue({
      parallel,
      signal: this.stopping.signal,
      perform: (task) => this.perform(task),
    })
  }

  get genesis(): Outpoint {
    return this.options.node.genesis
  }

  get report(): FollowReport {
    return this.branches.report
  }

  start(): void {
    this.running ??= this.run()
  }

  /** Stops; resolves when it no longer uses the store. */
  async stop(): Promise<void> {
    this.stopping.abort()
    clearTimeout(this.again)
    this.queue.wake()
    await this.running
  }

  /** Call when the chain has a new tip. */
  onBlock(height: number): void {
    if (this.stopping.signal.aborted) return
    this.tip = height
    this.hurry()
    // Once more later: the source may learn of a block after the tracker does.
    clearTimeout(this.again)
    this.again = setTimeout(() => this.hurry(), this.options.pollInterval).unref()
  }

  /**
   * Takes a transaction that a feed shows, if it is one to follow, and what follows from it.
   *
   * @throws ChainSourceError `NO_ANSWER` and errors of the node: then it should be shown again. What else is wrong with it is
   * logged.
   */
  async take(record: TransactionRecord): Promise<void> {
    if (this.stopping.signal.aborted) return
    try {
      for (const coin of await this.branches.take(record)) this.queue.push(coin)
    } catch (error) {
      if (this.stopping.signal.aborted) return
      if (!isOfBranch(error)) throw error
      this.note(error, record.txid)
    }
  }

  status(): FollowStatus {
    const { mints, transfers } = this.report
    const { asked, last } = this.swept
    const { ordinals } = this.options
    return {
      state: this.hasCaughtUp ? 'keeping up' : 'catching up',
      ...{ ordinals, mints, transfers },
      ...(this.sweptHeight !== undefined && { height: this.sweptHeight }),
      sweep: { asked, coins: Math.max(last, asked + this.queue.length) },
      unproven: this.sweeping.unproven + (this.isCommand ? 0 : this.branches.unprovenSubmitted),
      failures: this.report.failed,
      ...(this.lastError && { lastError: this.lastError }),
    }
  }

  /** Why branches cannot be followed, each once. */
  get failures(): string[] {
    return this.retries.reasons
  }

  /**
   * Sweeps until a sweep finds nothing new, or it is stopped. What fails is tried again in the sweeps after that.
   *
   * @throws FollowError `NOT_KNOWN` if the source does not know the genesis; ChainSourceError `NO_ANSWER`; errors of the node.
   */
  async crawl(): Promise<void> {
    const { signal } = this.stopping
    let failure: { error: unknown } | undefined
    this.onFatal = (error) => {
      failure ??= { error }
      this.stopping.abort()
      this.queue.wake()
    }
    this.running = (async () => {
      try {
        await this.branches.admitGenesis()
        let before: number
        let sweeps = 0
        do {
          before = this.found
          this.queue.hasDropped = false
          for (const key of this.retries.keys) this.asked.delete(key)
          await this.sweep()
          sweeps++
        } while (
          !signal.aborted &&
          (this.found > before ||
            this.queue.hasDropped ||
            (sweeps < SWEEPS_WITH_FAILURES && this.failures.length > 0))
        )
      } catch (error) {
        if (!signal.aborted) failure ??= { error }
      }
    })()
    await this.running
    if (failure !== undefined) throw failure.error
  }

  private get isCommand(): boolean {
    return this.onFatal !== undefined
  }

  /** How many transactions or proofs were admitted. */
  private get found(): number {
    const { mints, transfers, known } = this.report
    return mints + transfers + known
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping
    await this.unlessFailed(() => this.sweeping.resume())
    while (!signal.aborted) {
      const isDone =
        (await this.unlessFailed(() => this.branches.admitGenesis())) &&
        (await this.unlessFailed(() => this.sweep()))
      if (isDone) await this.rest()
      else await this.pauseIsOver()
    }
    await this.unlessFailed(() => this.sweeping.save())
  }

  /** Waits until the next sweep is due; meanwhile follows what a feed shows. */
  private async rest(): Promise<void> {
    const end = Date.now() + this.options.pollInterval
    while (!this.stopping.signal.aborted && !this.isUrgent && Date.now() < end) {
      await this.queue.pushed(end - Date.now())
      await this.queue.run(NOTHING)
    }
  }

  /** Asks about everything that is followed, and follows what it finds to the end. */
  private async sweep(): Promise<void> {
    const { tip } = this
    this.rotated = 0
    this.swept.asked = 0
    this.isUrgent = true
    await this.queue.run(this.tasks())
    if (this.stopping.signal.aborted) return
    this.swept.last = this.swept.asked
    // What was dropped is found by the next one.
    if (this.queue.hasDropped && !this.isCommand) {
      this.queue.hasDropped = false
      return
    }
    this.hasCaughtUp = true
    this.sweptHeight = tip
  }

  private async *tasks(): AsyncGenerator<Task> {
    for await (const coin of this.sweeping.rotation()) {
      yield* this.urgentTasks()
      if (++this.rotated % SAVE_EVERY === 0 && !this.isCommand) await this.sweeping.save()
      yield coin
    }
    yield* this.urgentTasks()
  }

  private async *urgentTasks(): AsyncGenerator<Task> {
    while (this.isUrgent) {
      this.isUrgent = false
      for await (const task of this.urgentOnce()) {
        yield task
        // A block came meanwhile: what is latest now is due first.
        if (this.isUrgent) break
      }
    }
  }

  private async *urgentOnce(): AsyncGenerator<Task> {
    // A command asks about each coin once, even if the chain grows meanwhile.
    if (!this.isCommand) {
      this.branches.newRound()
      this.asked.clear()
    }
    yield* this.sweeping.latest()
    for await (const txid of this.sweeping.unprovenTransactions()) yield { kind: 'unproven', txid }
    yield* this.retries.due()
  }

  private hurry(): void {
    this.isUrgent = true
    this.queue.wake()
  }

  private async perform(task: Task): Promise<void> {
    const key =
      task.kind === 'unproven' ? `unproven ${task.txid}` : `${task.kind} ${formatOutpoint(task.outpoint)}`
    await this.pauseIsOver()
    if (this.stopping.signal.aborted || this.asked.has(key) || this.retries.isWaiting(key)) return
    if (this.asked.size >= MAX_ASKED) this.asked.clear()
    this.asked.add(key)
    this.swept.asked++
    try {
      const found =
        task.kind === 'unproven' ? await this.branches.prove(task.txid) : await this.branches.follow(task)
      this.pause.length = 0
      if (found.isComplete) this.retries.succeeded(key)
      else this.retries.failed(key, { task, why: undefined, isPaused: true })
      for (const coin of found.coins) this.queue.push(coin)
    } catch (error) {
      // Any error may be a result of the stop.
      if (!this.stopping.signal.aborted) this.failed(key, task, error)
    }
  }

  private failed(key: string, task: Task, error: unknown): void {
    const why = messageOf(error)
    // Unproven transactions come again with each round, and what is unproven is followed when it is mined.
    const isPaused = task.kind !== 'unproven' && !(error instanceof FollowError && error.code === 'UNPROVEN')
    if (isOfBranch(error)) {
      this.note(error, key)
      this.retries.failed(key, { task, why, isPaused })
    } else if (this.onFatal !== undefined) {
      this.onFatal(error)
    } else {
      this.wait(error)
      this.asked.delete(key)
      // An outage says nothing about the task; what else is wrong may.
      if (isOutage(error)) this.queue.push(task)
      else this.retries.failed(key, { task, why, isPaused })
    }
  }

  /** Reports a branch that cannot be followed. A command lists them at its end. */
  private note(error: Error, about: string): void {
    this.report.failed++
    this.lastError = { at: Date.now(), message: error.message }
    if (this.isCommand) return
    this.options.logger.warn(
      { about, reason: error.message },
      'a branch could not be followed; retrying later',
    )
  }

  /** Asks nothing for a while. Those that were asking already do not make it longer. */
  private wait(error: unknown): void {
    this.lastError = { at: Date.now(), message: messageOf(error) }
    if (this.pause.until > Date.now()) return
    this.pause.length = Math.min(MAX_PAUSE, this.pause.length * 2 || FIRST_PAUSE)
    this.pause.until = Date.now() + this.pause.length
    const { logger } = this.options
    const level = isOutage(error) || error instanceof FollowError ? 'warn' : 'error'
    logger[level](
      { err: error, pause: this.pause.length },
      'following the chain is interrupted; it continues',
    )
  }

  private async pauseIsOver(): Promise<void> {
    const { signal } = this.stopping
    for (let left = this.pause.until - Date.now(); left > 0 && !signal.aborted; ) {
      await sleep(left, undefined, { signal, ref: false }).catch(() => {})
      left = this.pause.until - Date.now()
    }
  }

  private async unlessFailed(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      if (!this.stopping.signal.aborted) this.wait(error)
      return false
    }
  }
}

const NOTHING: AsyncIterator<never> = { next: async () => ({ done: true, value: undefined }) }
