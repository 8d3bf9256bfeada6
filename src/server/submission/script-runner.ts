import { runScripts, type ScriptSpender, TooCostlyError } from '../../../backend/src/protocol/run-scripts.js'
import { ScriptScheduler } from './script-scheduler.js'

/** The scripts of a submission. Can be sent to another thread as it is. */
export interface ScriptJob {
  spenders: ScriptSpender[]
  /** What they are likely to cost: those that look cheap come first. */
  likelyWork: number
  /** What all scripts may cost together (`RunBudget`). */
  maxWork: number
  /** How long it may take with all that runs beside it, in milliseconds. */
  timeout: number
}

/**
 * Runs the scripts of a submission.
 *
 * @throws TooCostlyError, or Error where they do not hold, in words that may quote a stranger; VerificationTimeoutError.
 */
export type ScriptRunner = (job: ScriptJob) => Promise<void>

/** What is as little as this is done in the thread that answers readers: some ten milliseconds, a few signatures. */
const LITTLE = 1_000_000

const scheduler = new ScriptScheduler()

/** Runs scripts in this thread, in turn with all others that run in it. */
export const runScriptsHere: ScriptRunner = async ({ spenders, likelyWork, maxWork, timeout }) => {
  await scheduler.run(() => runScripts(spenders, { maxWork }), { likelyWork, timeout })
}

/**
 * Runs scripts in this thread where they take little, as those of most submissions do, and in another one where they
 * look like more, or turn out to take more.
 */
export function handingOver(elsewhere: ScriptRunner): ScriptRunner {
  return async (job) => {
    if (job.likelyWork > LITTLE) return await elsewhere(job)
    try {
      await runScriptsHere({ ...job, maxWork: Math.min(LITTLE, job.maxWork) })
    } catch (error) {
      if (!(error instanceof TooCostlyError) || job.maxWork <= LITTLE) throw error
      await elsewhere(job)
    }
  }
}
