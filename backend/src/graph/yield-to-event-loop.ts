import { setImmediate as nextLoop } from 'node:timers/promises'
import { monotonic } from '../protocol/monotonic.js'

/** How long one piece of work may hold the thread before it yields, in milliseconds. */
const READ_SLICE_MS = 10
/** Less for writes: the statements of the embedded store block the thread. */
const WRITE_SLICE_MS = 5

type Queue = 'reading' | 'submitting'

/** Two queues, so that no submission waits behind a line of readers. */
const queues: Record<Queue, (() => void)[]> = { reading: [], submitting: [] }

/** Waits for a later turn of the event loop ({@link inLaterTurn}). */
export function yieldToEventLoop(queue: Queue = 'reading'): Promise<void> {
  return new Promise((resume) => inLaterTurn(queue, resume))
}

/**
 * Goes on in a later turn of the event loop. Each turn resumes one waiter per queue, first come first served: however much
 * long work there is, a short request waits for at most two slices.
 */
export function inLaterTurn(queue: Queue, resume: () => void): void {
  const waiting = queues[queue]
  if (waiting.push(resume) === 1) setImmediate(resumeNext, waiting)
}

function resumeNext(waiting: (() => void)[]): void {
  const resume = waiting.shift()
  if (waiting.length > 0) setImmediate(resumeNext, waiting)
  resume?.()
}

/** Splits long work on this thread into slices, between which other requests run. */
export class TimeSlice {
  private startedAt = monotonic()

  constructor(
    private readonly milliseconds = READ_SLICE_MS,
    private readonly pause: () => Promise<void> = yieldToEventLoop,
  ) {}

  get isOver(): boolean {
    return monotonic() - this.startedAt >= this.milliseconds
  }

  /** Yields to the event loop if the slice is over. */
  async yieldIfOver(): Promise<void> {
    if (!this.isOver) return
    await this.pause()
    this.startedAt = monotonic()
  }
}

/** One for all writes: they share the thread. */
const writeSlice = new TimeSlice(WRITE_SLICE_MS, () => nextLoop())

/** Yields between two statements of a long write, if writes have held the thread for a while. */
export function yieldBetweenStatements(): Promise<void> {
  return writeSlice.yieldIfOver()
}

export type Awaitable<Value> = Value | Promise<Value>

/** Applies `use` to a value: synchronously, unless the value is a promise. */
export function whenReady<Value, Result>(
  value: Awaitable<Value>,
  use: (value: Value) => Awaitable<Result>,
): Awaitable<Result> {
  return value instanceof Promise ? value.then(use) : use(value)
}
