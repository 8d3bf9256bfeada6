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
/** A step of more units than this is long, and gets a slice of its own. */
const LONG_STEP = 500_000
/** The most bytes that a run may hold in parallel with others; of those that need more, one runs at a time. */
const SMALL = 128 * 1024
/** A large run gives up its memory once its work exceeds that of a waiting one by this factor and this many units. */
const AHEAD = { times: 2, units: 5_000_000 }

type Steps = Iterator<Readonly<StepDemand>, void>

interface Run {
  open: () => Steps
  steps: Steps
  /** The work done so far, including work that was thrown away. */
  units: number
  likelyWork: number
  /** The memory for its next step. */
  bytes: number
  deadline: number
  timeout: number
  resolve(): void
  reject(error: unknown): void
}

/** A run's priority: the lowest goes first. */
function rank({ units, likelyWork }: Run): number {
  return Math.max(units, likelyWork)
}

/**
 * Runs scripts concurrently in one thread: the next slice always goes to the run with the least work so far, or the least
 * likely work. So cheap scripts finish soon, whatever else is running. Each turn of the event loop has one slice, however
 * many runs there are.
 *
 * Interpreters take up to a hundred megabytes each. Runs with little memory exist side by side; only one may hold more, and
 * it is thrown away, to be restarted later, if one with much less work needs the memory.
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
   * @param limits.likelyWork Their likely cost, in the units of the steps. It is not enforced, but a run that exceeds it
   * comes after those with less work.
   * @param limits.timeout In milliseconds.
   * @throws errors of a step; AnswerError after the timeout.
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

  /** Continues in a later turn of the event loop, so that a new run waits no longer than the others. */
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

  /** The run with the least work among those whose next step has enough memory, or can get it. */
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
        // After a step longer than a slice, others run first.
        if (step.value.units > LONG_STEP) return
      } while (monotonic() < end)
    } catch (error) {
      this.end(run)
      run.reject(error)
    }
  }

  /** Gives this run the memory that only one run may hold; false if another keeps it. */
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

/** The scripts of a submission. Can be posted to another thread unchanged. */
export interface ScriptJob {
  spenders: ScriptSpender[]
  /** Their likely cost: cheap ones run first. */
  likelyWork: number
  /** The most that all scripts may cost together (`RunBudget`). */
  maxWork: number
  /** How long it may take along with everything that runs in parallel, in milliseconds. */
  timeout: number
}

/**
 * Runs the scripts of a submission.
 *
 * @throws TooCostlyError; AnswerError after the timeout; Error if a script fails, with a message that may quote a stranger.
 */
export type ScriptRunner = (job: ScriptJob) => Promise<void>

/** The most units that run in the thread that answers readers: some ten milliseconds, a few signatures. */
const CHEAP = 1_000_000

const scheduler = new ScriptScheduler()

/** Runs scripts in this thread, scheduled with all others in it. */
export const runScriptsHere: ScriptRunner = ({ spenders, likelyWork, maxWork, timeout }) =>
  scheduler.run(() => runScripts(spenders, { maxWork }), { likelyWork, timeout })

/** Runs cheap scripts, which most are, in this thread, and those that look or turn out expensive elsewhere. */
export function offloadingExpensive(elsewhere: ScriptRunner): ScriptRunner {
  return (job) => {
    if (job.likelyWork > CHEAP) return elsewhere(job)
    return runScriptsHere({ ...job, maxWork: Math.min(CHEAP, job.maxWork) }).catch((error: unknown) => {
      if (!(error instanceof TooCostlyError) || job.maxWork <= CHEAP) throw error
      return elsewhere(job)
    })
  }
}
