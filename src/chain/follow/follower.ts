import { setTimeout as sleep } from 'node:timers/promises'
import PQueue from 'p-queue'
import type { Logger } from 'pino'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FrontierCoin } from '../../../backend/src/read/frontier.js'
import { type IsMine, untilMine } from '../ancestors/is-mine.js'
import type { ChainTip } from '../sources/chain-source.js'
import { FollowError, isOfBranch, isOutage, type LastError } from '../sources/errors.js'
import { MAX_FAILING, Retries } from '../sources/retries.js'
import { BranchFollower, type BranchOptions, type FollowReport } from './branch.js'
import { type FollowedOrdinals, Sweep, type SweptStore } from './sweep.js'

export interface FollowerOptions extends Omit<BranchOptions, 'node' | 'isFollowed'> {
  node: Omit<BranchOptions['node'], 'store'> & { store: SweptStore }
  /** How many coins are asked about at once. */
  parallel: number
  /** Milliseconds from the end of one sweep to the next, if no block starts it earlier. */
  pollInterval: number
  /** Called with each unproven transaction that is asked about, of which nothing was found in a block. */
  onUnproven?(txid: string): void
  /** Whether it is this process that follows; by default, it always is. */
  isMine?: IsMine | undefined
  logger: Logger
  /**
   * Called after each sweep that found what spends every node, with the tip of the chain when it began, if that is known. A
   * branch that failed a few times only may still be found.
   */
  onSwept?(tip: ChainTip | undefined): void
}

export interface FollowStatus {
  state: 'catching up' | 'keeping up'
  ordinals: FollowedOrdinals
  /** Admitted since the start. */
  mints: number
  transfers: number
  /** The height of the chain up to which everything that is followed was asked about. */
  height?: number
  /** The highest block in which something was found since the start. */
  found?: number
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

/** How many tasks wait at most. What does not fit is dropped: a sweep comes by again. */
const MAX_WAITING = 10_000
/** How many coins are remembered as asked about since the last block, so that none is asked about twice. */
const MAX_ASKED = 100_000
/** After how many coins the place of the rotation is stored. */
const SAVE_EVERY = 500
/** For how many tasks that are due first there is one of the rotation: frequent blocks must not keep it from going on. */
const URGENT_SHARE = 9
/** The first pause of a branch that failed, in milliseconds: a source may not have indexed all of a block yet. */
const FIRST_RETRY = 1000
/** How many sweeps a command makes at least if something fails. */
const SWEEPS_WITH_FAILURES = 3
/** How long nothing is asked after the source or the node did not answer, in milliseconds; it doubles each time. */
const FIRST_PAUSE = 1000
const MAX_PAUSE = 60_000

/**
 * Follows the name tree and ordinals along the chain: asks a chain source what spends each live node and each tip, admits what
 * it finds with its ancestors, and continues from there to the end (`docs/follow.md`). What to ask is read from the store, so
 * it continues after a restart. In what order transactions are admitted does not matter (`docs/spec/overlay.md`).
 */
export class Follower {
  private readonly sweeping: Sweep
  private readonly branches: BranchFollower
  private readonly retries: Retries<Task>
  private readonly queue: PQueue
  /** How many tasks were pushed: the last goes first, so that a tree is followed depth first, and only what branches off waits. */
  private pushed = 0
  private hasDropped = false
  private readonly stopping = new AbortController()
  /** Ends a rest. */
  private waking = new AbortController()
  private readonly asked = new Set<string>()
  private running: Promise<void> | undefined
  private rotated = 0
  /** The coins that the current sweep, and the last one, asked about. */
  private swept = { asked: 0, last: 0 }
  private tip: ChainTip | undefined
  private sweptHeight: number | undefined
  private hasCaughtUp = false
  /** Whether the node failed during the current sweep: what it was to do is tried again after a pause. */
  private hasPostponed = false
  /** Whether something happened after which the latest coins, unproven transactions and failures are due first. */
  private isUrgent = true
  /** Those that are left of them. */
  private urgent: AsyncGenerator<Task> | undefined
  private again: NodeJS.Timeout | undefined
  private pause = { until: 0, length: 0, end: new AbortController() }
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
    this.retries = new Retries(Math.min(FIRST_RETRY, pollInterval))
    this.queue = new PQueue({ concurrency: parallel })
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
    this.wake()
    await this.running
    await this.queue.onIdle()
  }

  /** Call when the chain has a new tip. */
  onBlock(tip: ChainTip): void {
    if (this.stopping.signal.aborted) return
    this.tip = tip
    if (tip.forkedAt !== undefined) this.branches.onFork()
    // What was undecided may not be any more.
    this.pause.end.abort()
    this.pause = { until: 0, length: 0, end: new AbortController() }
    this.hurry()
    // Once more later: the source may learn of a block after the tracker does.
    clearTimeout(this.again)
    this.again = setTimeout(() => this.hurry(), this.options.pollInterval).unref()
  }

  /**
   * Takes a transaction that a feed shows, if it is one to follow, and what follows from it.
   *
   * @throws ChainSourceError `NO_ANSWER` and errors of the node: then it should be shown again. After any other error, the coins
   * that it spends are asked about after a pause.
   */
  async take(record: TransactionRecord): Promise<void> {
    if (this.stopping.signal.aborted) return
    try {
      for (const coin of await this.branches.take(record)) this.push(coin)
    } catch (error) {
      if (this.stopping.signal.aborted) return
      if (!isOfBranch(error)) throw error
      this.note(error, record.txid)
      const failure = { why: error.message, isPaused: true }
      for (const coin of await this.branches.spentBy(record))
        this.retry(keyOf(coin), { ...failure, task: coin })
      this.wake()
    }
  }

  status(): FollowStatus {
    const { mints, transfers, height: found } = this.report
    const { asked, last } = this.swept
    const { ordinals } = this.options
    return {
      state: this.hasCaughtUp ? 'keeping up' : 'catching up',
      ...{ ordinals, mints, transfers },
      ...(this.sweptHeight !== undefined && { height: this.sweptHeight }),
      ...(found !== undefined && { found }),
      sweep: { asked, coins: Math.max(last, asked + this.queue.size + this.queue.pending) },
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
    }
    this.running = (async () => {
      try {
        await this.branches.admitGenesis()
        let before: number
        let sweeps = 0
        do {
          before = this.found
          this.hasDropped = false
          for (const key of this.retries.keys) this.asked.delete(key)
          await this.sweep()
          sweeps++
        } while (
          !signal.aborted &&
          (this.found > before ||
            this.hasDropped ||
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
    await untilMine(this.options.isMine, signal)
    await this.unlessFailed(() => this.sweeping.resume())
    while (!signal.aborted) {
      const isDone =
        (await this.unlessFailed(() => this.branches.admitGenesis())) &&
        (await this.unlessFailed(() => this.sweep()))
      if (isDone) await this.rest()
      else await this.pauseIsOver()
    }
    if (this.options.isMine?.() !== false) await this.unlessFailed(() => this.sweeping.save())
  }

  /** Waits until the next sweep is due; meanwhile follows what a feed shows. */
  private async rest(): Promise<void> {
    const end = monotonic() + this.options.pollInterval
    while (!this.stopping.signal.aborted && !this.isUrgent && monotonic() < end) {
      this.waking = new AbortController()
      const left = Math.min(end, this.retries.nextDue) - monotonic()
      await sleep(Math.max(0, left), undefined, { signal: this.waking.signal, ref: false }).catch(() => {})
      await this.performAll(this.retries.due())
    }
  }

  /** Asks about everything that is followed, and follows what it finds to the end. */
  private async sweep(): Promise<void> {
    const { tip } = this
    this.rotated = 0
    this.swept.asked = 0
    this.isUrgent = true
    this.urgent = undefined
    this.hasPostponed = false
    await this.performAll(this.tasks())
    if (this.stopping.signal.aborted) return
    this.swept.last = this.swept.asked
    // What was dropped is found by the next one.
    if ((this.hasDropped || this.hasPostponed || this.isMostlyFailing) && !this.isCommand) {
      this.hasDropped = false
      return
    }
    this.hasCaughtUp = true
    this.sweptHeight = tip?.height
    if (!this.retries.some(({ kind }) => kind === 'node')) this.options.onSwept?.(tip)
  }

  /** Whether most coins have no usable answer: then it is the source that lacks them, and not this or that branch. */
  private get isMostlyFailing(): boolean {
    return this.retries.paused > Math.min(this.rotated, MAX_FAILING) / 2
  }

  private async *tasks(): AsyncGenerator<Task> {
    for await (const coin of this.sweeping.rotation()) {
      yield* this.urgentTasks(URGENT_SHARE)
      if (!this.isCommand) yield* this.retries.due()
      if (++this.rotated % SAVE_EVERY === 0 && !this.isCommand) await this.sweeping.save()
      yield coin
    }
    if (this.urgent === undefined) yield* this.urgentTasks(1)
    // What is left of them. A block that comes meanwhile starts the next sweep.
    while (!this.isUrgent) {
      const next = await this.urgent?.next()
      if (next === undefined || next.done === true) return
      yield next.value
    }
  }

  /** At most so many of those that are due first; the others follow the next time. A block starts them again with the latest. */
  private async *urgentTasks(count: number): AsyncGenerator<Task> {
    for (let left = count; left > 0; left--) {
      if (this.isUrgent) this.urgent = this.urgentOnce()
      this.isUrgent = false
      const next = await this.urgent?.next()
      if (next === undefined || next.done === true) return
      yield next.value
    }
  }

  private async *urgentOnce(): AsyncGenerator<Task> {
    // A command asks about each coin once, even if the chain grows meanwhile.
    if (!this.isCommand) {
      this.branches.newRound()
      this.retries.newRound()
      this.asked.clear()
    }
    yield* this.sweeping.latest()
    for await (const txid of this.sweeping.unprovenTransactions()) yield { kind: 'unproven', txid }
    yield* this.retries.due()
  }

  private hurry(): void {
    this.isUrgent = true
    this.wake()
  }

  private wake(): void {
    this.waking.abort()
  }

  /** Has a task performed before those of a list. */
  private push(task: Task): void {
    if (this.queue.size >= MAX_WAITING) this.hasDropped = true
    else void this.queue.add(() => this.perform(task), { priority: ++this.pushed })
  }

  /** Performs the tasks of a list, and what they lead to; resolves when nothing is left. */
  private async performAll(tasks: Iterable<Task> | AsyncIterable<Task>): Promise<void> {
    try {
      for await (const task of tasks) {
        if (this.stopping.signal.aborted) break
        void this.queue.add(() => this.perform(task))
        // No further tasks are read than are performed.
        await this.queue.onSizeLessThan(1)
      }
    } finally {
      await this.queue.onIdle()
    }
  }

  private async perform(task: Task): Promise<void> {
    const key = keyOf(task)
    await this.pauseIsOver()
    await untilMine(this.options.isMine, this.stopping.signal)
    if (this.stopping.signal.aborted || this.asked.has(key) || this.retries.isWaiting(key)) return
    if (this.asked.size >= MAX_ASKED) this.asked.clear()
    this.asked.add(key)
    this.swept.asked++
    try {
      const found =
        task.kind === 'unproven' ? await this.branches.prove(task.txid) : await this.branches.follow(task)
      this.pause.length = 0
      if (task.kind === 'unproven') this.options.onUnproven?.(task.txid)
      if (found.isComplete) this.retries.succeeded(key)
      else this.retry(key, { task, why: undefined, isPaused: true })
      for (const coin of found.coins) this.push(coin)
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
      this.retry(key, { task, why, isPaused })
    } else if (this.onFatal !== undefined) {
      this.onFatal(error)
    } else {
      this.wait(error)
      // An outage says nothing about the task; what else is wrong may.
      if (isOutage(error)) {
        this.asked.delete(key)
        this.push(task)
      } else {
        this.hasPostponed = true
        this.retry(key, { task, why, isPaused })
      }
    }
  }

  private retry(key: string, failure: { task: Task; why: string | undefined; isPaused: boolean }): void {
    this.retries.failed(key, failure)
    if (failure.isPaused && !this.isCommand) this.asked.delete(key)
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
    if (this.pause.until > monotonic()) return
    this.pause.length = Math.min(MAX_PAUSE, this.pause.length * 2 || FIRST_PAUSE)
    this.pause.until = monotonic() + this.pause.length
    const { logger } = this.options
    const level = isOutage(error) || error instanceof FollowError ? 'warn' : 'error'
    logger[level](
      { err: error, pause: this.pause.length },
      'following the chain is interrupted; it continues',
    )
  }

  private async pauseIsOver(): Promise<void> {
    const { signal } = this.stopping
    for (let left = this.pause.until - monotonic(); left > 0 && !signal.aborted; ) {
      const either = AbortSignal.any([signal, this.pause.end.signal])
      await sleep(left, undefined, { signal: either, ref: false }).catch(() => {})
      left = this.pause.until - monotonic()
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

function keyOf(task: Task): string {
  return `${task.kind} ${task.kind === 'unproven' ? task.txid : formatOutpoint(task.outpoint)}`
}
