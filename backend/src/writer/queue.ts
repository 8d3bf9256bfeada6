import { steadyTime } from '../protocol/monotonic.js'
import { type Place, WriterBusyError } from './writer.js'

/** The most writes that share a commit, and their total weight in bytes: all others wait for that commit. */
const MAX_GROUP = 64
const MAX_WEIGHT = 1024 * 1024
/** Above this weight, a write has a commit of its own. */
const HEAVY = MAX_WEIGHT / 2
/** A group that takes longer than this, in milliseconds, holds the writer. */
const LONG = 500

export interface Task {
  /** Makes its changes, in a savepoint of its own. Its result is returned once they are committed. */
  run: () => unknown
  place: Place
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

/** The outcome of a task of a group, in the order of the tasks. */
export type Outcome = { done: unknown } | { failed: unknown }

/**
 * The queue of writes. The one with the highest priority goes first, and takes along others that wait: they share a commit, and
 * so its sync to disk (group commit).
 *
 * The writer blocks its thread while it works, so a write with limited patience is withdrawn from another thread: beginning and
 * withdrawing it are one exchange in shared memory ({@link decide}).
 */
export class WriteQueue {
  private readonly waiting: Task[] = []
  private running: Promise<void> | undefined
  private isHeld = false

  /**
   * @param commit Runs tasks and commits their changes. @throws if nothing of any of them was kept.
   * @param since Set to the time when the current group began, for those who wait in other threads; 0 if there is none.
   * @param failed Maps the error of a task or commit to the one that callers get.
   */
  constructor(
    private readonly commit: (tasks: Task[]) => Outcome[] | Promise<Outcome[]>,
    private readonly since = new SharedNumber(),
    private readonly failed = (error: unknown): unknown => error,
  ) {}

  /** Runs a task when its turn comes, and resolves with its result after the commit. */
  add<Result>(run: () => Result, place: Place = {}): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.waiting.push({ run, place, resolve: resolve as Task['resolve'], reject })
      this.start()
    })
  }

  /** Runs only early tasks until {@link release}. */
  hold(): void {
    this.isHeld = true
  }

  release(): void {
    this.isHeld = false
    this.start()
  }

  /** Rejects all waiting tasks. */
  refuse(error: unknown): void {
    for (const { reject } of this.waiting.splice(0)) reject(error)
  }

  /** Resolves when nothing is running, and no task that may run is waiting. */
  async idle(): Promise<void> {
    await this.running
  }

  private start(): void {
    if (this.hasNext) this.running ??= this.runAll()
  }

  private async runAll(): Promise<void> {
    // Writes of the same turn of the event loop share the first commit.
    await Promise.resolve()
    while (this.hasNext) {
      const tasks = this.takeGroup()
      if (tasks.length === 0) continue
      this.since.value = steadyTime()
      try {
        const committed = this.commit(tasks)
        const outcomes = committed instanceof Promise ? await committed : committed
        for (const [index, { resolve, reject }] of tasks.entries()) {
          const outcome = outcomes[index]
          if (outcome !== undefined && 'done' in outcome) resolve(outcome.done)
          else reject(this.failed(outcome?.failed))
        }
      } catch (thrown) {
        const error = this.failed(thrown)
        for (const { reject } of tasks) reject(error)
      }
      this.since.value = 0
      // Messages that came meanwhile are received before the next group is chosen.
      await new Promise((resume) => setImmediate(resume))
    }
    this.running = undefined
  }

  private get hasNext(): boolean {
    return this.isHeld ? this.waiting.some(isEarly) : this.waiting.length > 0
  }

  /** The next task, with others that share its commit. */
  private takeGroup(): Task[] {
    this.waiting.sort((one, other) => priorityOf(other) - priorityOf(one))
    const taken: Task[] = []
    let weight = 0
    for (let at = 0; at < this.waiting.length && taken.length < MAX_GROUP; ) {
      const task = this.waiting[at] as Task
      const own = task.place.weight ?? 0
      const isFirst = taken.length === 0
      if ((this.isHeld && !isEarly(task)) || (!isFirst && (own > HEAVY || weight + own > MAX_WEIGHT))) {
        at++
        continue
      }
      this.waiting.splice(at, 1)
      if (task.place.claim !== undefined && !decide(task.place.claim, BEGUN)) continue
      taken.push(task)
      weight += own
      if (own > HEAVY) break
    }
    return taken
  }
}

function isEarly({ place }: Task): boolean {
  return place.isEarly === true
}

function priorityOf({ place: { priority = 0 } }: Task): number {
  return priority
}

const BEGUN = 1
const WITHDRAWN = 2

/** Whether a write that may be withdrawn from another thread begins, or is withdrawn: the first to ask decides. */
export function decide(claim: SharedArrayBuffer, decision: number): boolean {
  return Atomics.compareExchange(new Int32Array(claim), 0, 0, decision) === 0
}

/** A number in memory that threads share; one of them sets it. */
export class SharedNumber {
  private readonly cell: BigInt64Array

  constructor(readonly buffer = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)) {
    this.cell = new BigInt64Array(buffer)
  }

  get value(): number {
    return Number(Atomics.load(this.cell, 0))
  }

  set value(value: number) {
    Atomics.store(this.cell, 0, BigInt(value))
  }
}

/**
 * Waits for a write, but no longer than its patience while one group holds the writer.
 *
 * @throws WriterBusyError if it was withdrawn: nothing of it was stored.
 */
export function withPatience<Result>(
  writing: (claim: SharedArrayBuffer) => Promise<Result>,
  { patience, since }: { patience: number; since: SharedNumber },
): Promise<Result> {
  const claim = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const began = steadyTime()
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const { value: busySince } = since
      const lasted = busySince === 0 ? 0 : steadyTime() - busySince
      if (lasted < LONG) timer = setTimeout(look, Math.max(1, LONG - lasted)).unref()
      else if (decide(claim, WITHDRAWN)) reject(new WriterBusyError(steadyTime() - began))
    }
    let timer = setTimeout(look, patience).unref()
    writing(claim).then(
      (result) => {
        clearTimeout(timer)
        resolve(result)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

/** Added to the weight of a submission for each one that its client already has in the queue, so that clients take turns. */
const BYTES_PER_SUBMISSION = 16 * 1024
/** How much later a submission is due for each doubling of its weight, in milliseconds. */
const DELAY = 1000
/** How long a submission waits behind one long write before its client is asked to retry, in milliseconds. */
const PATIENCE = 2000

/**
 * The place of a submission that comes now: the earliest due goes first, and heavier ones are due later. So a light one waits for
 * the write in progress, but not for heavier ones that came shortly before it; and a flood of light ones delays a heavy one by at
 * most some twenty seconds.
 *
 * @param submitted.bytes Size of its transactions.
 * @param submitted.ahead How many submissions of the same client are in the queue.
 */
export function submissionPlace({ bytes, ahead = 0 }: { bytes: number; ahead?: number | undefined }): Place {
  const due = steadyTime() + DELAY * Math.log2(1 + (bytes + ahead * BYTES_PER_SUBMISSION) / 1024)
  return { priority: -due, weight: bytes, patience: PATIENCE }
}
