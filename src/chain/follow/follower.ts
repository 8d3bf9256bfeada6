import PQueue from 'p-queue'
import type { Logger } from 'pino'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FrontierCoin } from '../../../backend/src/read/frontier.js'
import { type IsMine, pause, untilMine } from '../sources/background.js'
import type { ChainTip } from '../sources/chain-source.js'
import { FollowError, isOfBranch, isOutage } from '../sources/errors.js'
import { MAX_FAILING, Retries } from '../sources/retries.js'
import type { FollowStatus, LastError } from '../sources/status.js'
import { BranchFollower, type BranchOptions, type FollowReport } from './branch.js'
import { Sweep, type SweptStore } from './sweep.js'

export interface FollowerOptions extends Omit<BranchOptions, 'node' | 'isFollowed'> {
  node: Omit<BranchOptions['node'], 'store'> & { store: SweptStore }
  /** How many coins are asked about at once. */
  parallel: number
  /** Milliseconds from the end of one sweep to the next, unless a block starts it earlier. */
  pollInterval: number
  /** Called with each unproven transaction that was asked about and is in no block yet. */
  onUnproven?(txid: string): void
  /** Whether this process follows; by default, it always does. */
  isMine?: IsMine | undefined
  logger: Logger
  /**
   * Called after each sweep that got an answer for every node, with the tip of the chain when the sweep began, if known. A branch
   * that has failed only a few times may still be found.
   */
  onSwept?(tip: ChainTip | undefined): void
}

/** A question to the source: what spends a coin, or whether an unproven transaction is mined by now. */
type Task = FrontierCoin | { kind: 'unproven'; txid: string }

/** The most tasks that wait. Beyond that they are dropped; the next sweep finds them. */
const MAX_WAITING = 10_000
/** How many coins are remembered as asked about since the last block, so that none is asked about twice. */
const MAX_ASKED = 100_000
/** The position of the rotation is stored after this many coins. */
const SAVE_EVERY = 500
/** One task of the rotation runs for this many urgent ones: frequent blocks must not keep it from moving on. */
const URGENT_SHARE = 9
/** The first pause of a branch that failed, in milliseconds: a source may not have indexed the whole block yet. */
const FIRST_RETRY = 1000
/** The fewest sweeps that a command makes while something fails. */
const SWEEPS_WITH_FAILURES = 3
/** How long nothing is asked after the source or the node failed to answer, in milliseconds; it doubles each time. */
const FIRST_PAUSE = 1000
const MAX_PAUSE = 60_000

/**
 * Follows the name tree and ordinals along the chain: asks a chain source what spends each live node and each tip, admits the
 * spenders with their ancestors, and continues from there to the end (`docs/follow.md`). The coins to ask about are read from the
 * store, so it continues after a restart. The order in which transactions are admitted does not matter (`docs/spec/overlay.md`).
 */
export class Follower {
  private readonly sweeping: Sweep
  private readonly branches: BranchFollower
  private readonly retries: Retries<Task>
  private readonly queue: PQueue
  /** The number of tasks pushed. The last one goes first: the tree is followed depth first, so only forks have to wait. */
  private pushed = 0
  private hasDropped = false
  private readonly stopping = new AbortController()
  /** Ends the wait for the next sweep. */
  private waking = new AbortController()
  private readonly asked = new Set<string>()
  private running: Promise<void> | undefined
  private rotated = 0
  /** How many coins the current and the last sweep asked about. */
  private swept = { asked: 0, last: 0 }
  private tip: ChainTip | undefined
  private sweptHeight: number | undefined
  private hasCaughtUp = false
  /** Whether the node failed during the current sweep: its task is retried after a pause. */
  private hasPostponed = false
  /** Whether something happened that makes the latest coins, unproven transactions and failures urgent. */
  private isUrgent = true
  /** The rest of the urgent tasks. */
  private urgent: AsyncGenerator<Task> | undefined
  private again: NodeJS.Timeout | undefined
  private pause = { until: 0, length: 0, end: new AbortController() }
  private lastError: LastError | undefined
  /** Set while it runs as a one-off command: an error that would otherwise cause a pause ends the run. */
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

  /** Stops; resolves when the store is no longer in use. */
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
    // The new block may decide what was undecided.
    this.pause.end.abort()
    this.pause = { until: 0, length: 0, end: new AbortController() }
    this.hurry()
    // Again later: the source may learn of a block after the tracker does.
    clearTimeout(this.again)
    this.again = setTimeout(() => this.hurry(), this.options.pollInterval).unref()
  }

  /**
   * Takes a transaction from a feed, if it is one to follow, and goes on from there.
   *
   * @throws ChainSourceError `NO_ANSWER` and errors of the node: then the feed should bring it again. After any other error, the
   * coins that it spends are asked about after a pause.
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

  /** Why branches cannot be followed, without duplicates. */
  get failures(): string[] {
    return this.retries.reasons
  }

  /**
   * Sweeps until a sweep finds nothing new, or it is stopped. Failures are retried in the next sweeps.
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

  /** Waits until the next sweep is due; meanwhile retries failures that are due and follows transactions from a feed. */
  private async rest(): Promise<void> {
    const end = monotonic() + this.options.pollInterval
    while (!this.stopping.signal.aborted && !this.isUrgent && monotonic() < end) {
      this.waking = new AbortController()
      await pause(Math.min(end, this.retries.nextDue) - monotonic(), this.waking.signal)
      await this.performAll(this.retries.due())
    }
  }

  /** Asks about everything that is followed, and follows each spender to the end. */
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
    // The next sweep finds what was dropped.
    if ((this.hasDropped || this.hasPostponed || this.isMostlyFailing) && !this.isCommand) {
      this.hasDropped = false
      return
    }
    this.hasCaughtUp = true
    this.sweptHeight = tip?.height
    if (!this.retries.some(({ kind }) => kind === 'node')) this.options.onSwept?.(tip)
  }

  /** Whether most coins have no usable answer: then the source is at fault, not single branches. */
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
    // The remaining urgent tasks. A block that comes meanwhile starts the next sweep.
    while (!this.isUrgent) {
      const next = await this.urgent?.next()
      if (next === undefined || next.done === true) return
      yield next.value
    }
  }

  /** The next urgent tasks, up to a number; the others follow the next time. A new block starts over with the latest. */
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

  /** Queues a task ahead of those of a list. */
  private push(task: Task): void {
    if (this.queue.size >= MAX_WAITING) this.hasDropped = true
    else void this.queue.add(() => this.perform(task), { priority: ++this.pushed })
  }

  /** Performs the tasks of a list and those that follow from them; resolves when none is left. */
  private async performAll(tasks: Iterable<Task> | AsyncIterable<Task>): Promise<void> {
    try {
      for await (const task of tasks) {
        if (this.stopping.signal.aborted) break
        void this.queue.add(() => this.perform(task))
        // Tasks are read only as fast as they are performed.
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
      // Any error may be caused by the stop.
      if (!this.stopping.signal.aborted) this.failed(key, task, error)
    }
  }

  private failed(key: string, task: Task, error: unknown): void {
    const why = messageOf(error)
    // Each round lists unproven transactions again, and a spender refused as `UNPROVEN` is followed once it is mined.
    const isPaused = task.kind !== 'unproven' && !(error instanceof FollowError && error.code === 'UNPROVEN')
    if (isOfBranch(error)) {
      this.note(error, key)
      this.retry(key, { task, why, isPaused })
    } else if (this.onFatal !== undefined) {
      this.onFatal(error)
    } else {
      this.wait(error)
      // An outage is not the fault of the task; any other error may be.
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

  /** Reports a branch that cannot be followed. A command lists them all at its end. */
  private note(error: Error, about: string): void {
    this.report.failed++
    this.lastError = { at: Date.now(), message: error.message }
    if (this.isCommand) return
    this.options.logger.warn(
      { about, reason: error.message },
      'a branch could not be followed; retrying later',
    )
  }

  /** Asks nothing for a while. Failures of questions that were already under way do not prolong the pause. */
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
      await pause(left, AbortSignal.any([signal, this.pause.end.signal]))
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
