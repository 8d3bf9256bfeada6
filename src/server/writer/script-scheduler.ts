import { inLaterTurn } from '../../../backend/src/graph/yield-to-event-loop.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import {
  runScripts,
  type ScriptSpender,
  type StepDemand,
  TooCostlyError,
} from '../../../backend/src/protocol/run-scripts.js'
import { AnswerError } from '../../gateway/http/errors.js'

/** How long scripts run before they yield to the event loop, in milliseconds. */
const SLICE = 5
/** From how many units on a step is long, and has a slice to itself. */
const LONG_STEP = 500_000
/** Up to how many bytes a run may hold beside others; of those that need more, one runs at a time. */
const SMALL = 128 * 1024
/** A run gives its memory up to one that waits for it once it has had so many times the work, and so many units more. */
const AHEAD = { times: 2, units: 5_000_000 }

type Steps = Iterator<Readonly<StepDemand>, void>

interface Run {
  open: () => Steps
  steps: Steps
  /** Work done so far, including work that was thrown away. */
  units: number
  likelyWork: number
  /** What its next step needs. */
  bytes: number
  deadline: number
  timeout: number
  resolve(): void
  reject(error: unknown): void
}

/** The lowest runs first. */
function rank({ units, likelyWork }: Run): number {
  return Math.max(units, likelyWork)
}

/**
 * Runs scripts concurrently in one thread: the next slice always goes to the run with the least work so far, or the least
 * likely work. So cheap scripts finish soon, whatever else runs and for however long. There is one slice in each turn of the
 * event loop, however many runs there are.
 *
 * Interpreters take up to a hundred megabytes each. Runs that hold little exist side by side; of the others there is one, and
 * it is thrown away, to be started again later, if one with much less work needs the memory.
 */
export class ScriptScheduler {
  private readonly runs = new Set<Run>()
  /** The only run that may hold more than {@link SMALL}. */
  private large: Run | undefined
  private isWorking = false

  get size(): number {
    return this.runs.size
  }

  /**
   * Runs all steps.
   *
   * @param open Starts the steps; called again if they are restarted.
   * @param limits.likelyWork What they are likely to cost, in the units of the steps. It is not enforced: a run that has had
   * more comes after those that look like as much.
   * @param limits.timeout In milliseconds.
   * @throws What a step throws; AnswerError after the timeout.
   */
  run(open: () => Steps, limits: { likelyWork: number; timeout: number }): Promise<void> {
    const { likelyWork, timeout } = limits
    return new Promise((resolve, reject) => {
      const deadline = monotonic() + timeout
      const run = { open, steps: open(), likelyWork, deadline, timeout, resolve, reject }
      this.runs.add({ ...run, units: 0, bytes: 0 })
      if (!this.isWorking) this.goOn()
    })
  }

  /** Works in a later turn: a new run waits no longer than the others. */
  private goOn(): void {
    this.isWorking = this.runs.size > 0
    if (this.isWorking) inLaterTurn('submitting', this.work)
  }

  private readonly work = (): void => {
    this.rejectLate()
    const next = this.choose()
    if (next !== undefined) this.runSlice(next)
    this.goOn()
  }

  /** The run with the least work of those that have the memory for their next step, or may get it. */
  private choose(): Run | undefined {
    let chosen: Run | undefined
    for (const run of this.runs)
      if ((chosen === undefined || rank(run) < rank(chosen)) && this.mayUseMemory(run)) chosen = run
    return chosen
  }

  private mayUseMemory(run: Run): boolean {
    const { large } = this
    if (run.bytes <= SMALL || large === run || large === undefined) return true
    return large.units > AHEAD.times * rank(run) + AHEAD.units
  }

  private runSlice(run: Run): void {
    const end = monotonic() + SLICE
    try {
      do {
        if (run.bytes > SMALL && !this.takeMemory(run)) return
        const step = run.steps.next()
        if (step.done) {
          this.end(run)
          run.resolve()
          return
        }
        run.units += step.value.units
        run.bytes = step.value.bytes
        if (this.large === run && run.bytes <= SMALL) this.large = undefined
        // After a step that is longer than a slice, others run first.
        if (step.value.units > LONG_STEP) return
      } while (monotonic() < end)
    } catch (error) {
      this.end(run)
      run.reject(error)
    }
  }

  /** Assigns the memory that only one run may hold to this one; false if another keeps it. */
  private takeMemory(run: Run): boolean {
    const { large } = this
    if (large === run) return true
    if (!this.mayUseMemory(run)) return false
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

  private rejectLate(): void {
    const now = monotonic()
    for (const run of this.runs) {
      if (now < run.deadline) continue
      this.end(run)
      run.reject(
        new AnswerError(
          'NOT_READY',
          `the submission could not be verified within ${run.timeout} ms; try again later`,
          {
            headers: { 'Retry-After': '30' },
          },
        ),
      )
    }
  }
}

/** The scripts of a submission. Can be posted to another thread as it is. */
export interface ScriptJob {
  spenders: ScriptSpender[]
  /** What they are likely to cost: cheap ones run first. */
  likelyWork: number
  /** What all scripts may cost together (`RunBudget`). */
  maxWork: number
  /** How long it may take with all that runs beside it, in milliseconds. */
  timeout: number
}

/**
 * Runs the scripts of a submission.
 *
 * @throws TooCostlyError; AnswerError after the timeout; Error if a script fails, with a message that may quote a stranger.
 */
export type ScriptRunner = (job: ScriptJob) => Promise<void>

/** Up to how many units run in the thread that answers readers: some ten milliseconds, a few signatures. */
const CHEAP = 1_000_000

const scheduler = new ScriptScheduler()

/** Runs scripts in this thread, scheduled with all others in it. */
export const runScriptsHere: ScriptRunner = ({ spenders, likelyWork, maxWork, timeout }) =>
  scheduler.run(() => runScripts(spenders, { maxWork }), { likelyWork, timeout })

/** Runs cheap scripts in this thread, as most are, and those that look or turn out expensive elsewhere. */
export function offloadingExpensive(elsewhere: ScriptRunner): ScriptRunner {
  return (job) => {
    if (job.likelyWork > CHEAP) return elsewhere(job)
    return runScriptsHere({ ...job, maxWork: Math.min(CHEAP, job.maxWork) }).catch((error: unknown) => {
      if (!(error instanceof TooCostlyError) || job.maxWork <= CHEAP) throw error
      return elsewhere(job)
    })
  }
}
