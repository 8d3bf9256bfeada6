import { monotonic } from '../protocol/monotonic.js'
import type { Steps } from '../protocol/steps.js'

/** How long one piece of work may hold the thread before it yields, in milliseconds. */
const SLICE_MS = 10

type Queue = 'reading' | 'submitting'

/** Two queues, so that no submission waits behind a line of readers. */
const queues: Record<Queue, (() => void)[]> = { reading: [], submitting: [] }

/** Waits for a later turn of the event loop ({@link inLaterTurn}). */
export function yieldToEventLoop(queue: Queue = 'reading'): Promise<void> {
  return new Promise((resume) => inLaterTurn(queue, resume))
}

/**
 * Resumes in a later turn of the event loop. Each turn resumes one waiter per queue, first come first served: however much long
 * work there is, a short request waits for at most two slices.
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
  private before = 0

  get isOver(): boolean {
    return monotonic() - this.startedAt >= SLICE_MS
  }

  /** How long all slices took so far, in milliseconds, without the work between them. */
  get spent(): number {
    return this.before + monotonic() - this.startedAt
  }

  async yieldIfOver(): Promise<void> {
    if (!this.isOver) return
    this.before = this.spent
    await yieldToEventLoop()
    this.startedAt = monotonic()
  }
}

/** Does the steps, and yields to the event loop between two of them if a slice is over. */
export async function inSlices<Result>(steps: Steps<Result>, slice = new TimeSlice()): Promise<Result> {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (slice.isOver) await slice.yieldIfOver()
  }
}

export type Awaitable<Value> = Value | Promise<Value>

/** Applies `use` to a value: synchronously, unless the value is a promise. */
export function whenReady<Value, Result>(
  value: Awaitable<Value>,
  use: (value: Value) => Awaitable<Result>,
): Awaitable<Result> {
  return value instanceof Promise ? value.then(use) : use(value)
}
