import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import type { StepDemand } from '../../../backend/src/protocol/run-scripts.js'
import { NotReadyError } from '../../gateway/http/errors.js'

/** So many others ask for as much that it would not be done in time. */
export class VerificationTimeoutError extends NotReadyError {
  override readonly headers = { 'Retry-After': '30' }

  constructor(timeout: number) {
    super(`the submission could not be verified within ${timeout} ms; try again later`)
  }
}

/** How long scripts run before whatever else the thread does has its turn, in milliseconds. */
const SLICE = 5
/** From how many units on a step is long: in a slice it is alone. */
const LONG_STEP = 500_000
/** Up to how many bytes a run may hold next to others; of those that need more, one runs at a time. */
const SMALL = 128 * 1024
/** By how much a run has to be ahead of one that waits for its memory to give it up: so many times the work, and so much more. */
const AHEAD = { times: 2, units: 5_000_000 }

type Steps = Iterator<Readonly<StepDemand>, void>

interface Run {
  open: () => Steps
  steps: Steps
  /** What was spent on it, work that was given up included. */
  units: number
  likelyWork: number
  /** What its next step takes. */
  bytes: number
  /** By when it is to be done. */
  deadline: number
  timeout: number
  resolve(): void
  reject(error: unknown): void
}

/** The lower, the sooner its turn. */
function rank({ units, likelyWork }: Run): number {
  return Math.max(units, likelyWork)
}

/**
 * Runs scripts in turn: at each moment the run that has had, or looks like, the least work. So what takes little is done soon, whatever
 * else is there and for how long it has been. One slice is taken in a turn of the event loop, however many runs wait.
 *
 * Interpreters take up to a hundred megabytes each. Those that hold little stand side by side; of the others one does, and
 * it is given up, to begin anew later, where one that has had much less work needs the memory.
 */
export class ScriptScheduler {
  private readonly runs = new Set<Run>()
  /** The one that may hold much. */
  private large: Run | undefined
  private isWorking = false

  /** How many runs are under way. */
  get size(): number {
    return this.runs.size
  }

  /**
   * Takes all steps, in turn with others.
   *
   * @param open Begins the steps; called again where they are begun anew.
   * @param options.likelyWork What they look like costing, in the units of the steps. Nobody is held to it: whoever has had
   * more comes after those that look like as much.
   * @param options.timeout In milliseconds.
   * @throws What a step throws; VerificationTimeoutError where it is not done in time.
   */
  async run(
    open: () => Steps,
    { likelyWork, timeout }: { likelyWork: number; timeout: number },
  ): Promise<void> {
    return await new Promise<void>((resolve, reject) => {
      const deadline = performance.now() + timeout
      this.runs.add({
        open,
        steps: open(),
        units: 0,
        likelyWork,
        bytes: 0,
        deadline,
        timeout,
        resolve,
        reject,
      })
      if (!this.isWorking) void this.work()
    })
  }

  private async work(): Promise<void> {
    this.isWorking = true
    while (this.runs.size > 0) {
      // First of all, so that whoever has just come waits for no more than the others do.
      await yieldToEventLoop('submitting')
      this.endLate()
      const next = this.choose()
      if (next !== undefined) this.takeSlice(next)
    }
    this.isWorking = false
  }

  /** The one with the least work of those that have the memory for their next step, or may get it. */
  private choose(): Run | undefined {
    let chosen: Run | undefined
    for (const run of this.runs)
      if ((chosen === undefined || rank(run) < rank(chosen)) && this.mayHold(run)) chosen = run
    return chosen
  }

  private mayHold(run: Run): boolean {
    const { large } = this
    if (run.bytes <= SMALL || large === run || large === undefined) return true
    return large.units > AHEAD.times * rank(run) + AHEAD.units
  }

  private takeSlice(run: Run): void {
    const end = performance.now() + SLICE
    try {
      do {
        if (run.bytes > SMALL && !this.hold(run)) return
        const step = run.steps.next()
        if (step.done) {
          this.end(run)
          run.resolve()
          return
        }
        run.units += step.value.units
        run.bytes = step.value.bytes
        if (this.large === run && run.bytes <= SMALL) this.large = undefined
        // A step that takes longer than a slice waits for its turn as what it takes would.
        if (step.value.units > LONG_STEP) return
      } while (performance.now() < end)
    } catch (error) {
      this.end(run)
      run.reject(error)
    }
  }

  /** Gives the memory that one run may hold to this one; false where another keeps it. */
  private hold(run: Run): boolean {
    const { large } = this
    if (large === run) return true
    if (!this.mayHold(run)) return false
    if (large !== undefined) {
      large.steps.return?.()
      large.steps = large.open()
      large.bytes = 0
    }
    this.large = run
    return true
  }

  private end(run: Run): void {
    this.runs.delete(run)
    if (this.large === run) this.large = undefined
  }

  private endLate(): void {
    const now = performance.now()
    for (const run of this.runs) {
      if (now < run.deadline) continue
      this.end(run)
      run.reject(new VerificationTimeoutError(run.timeout))
    }
  }
}
