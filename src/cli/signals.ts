import { setMaxListeners } from 'node:events'
import { InterruptedError } from './command-error.js'

/** A signal that ends a command between two of its steps. */
export interface Interruption {
  /** Aborted by SIGINT or SIGTERM; its reason is an {@link InterruptedError}. */
  signal: AbortSignal
  /** Runs work; what it throws after a signal is reported as the interruption that it is. */
  during<Result>(work: () => Promise<Result>): Promise<Result>
}

/** Takes SIGINT and SIGTERM once; a second one ends the process as it would any other. */
export function untilSignal(): Interruption {
  const stop = new AbortController()
  // Each request under way listens to it.
  setMaxListeners(0, stop.signal)
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new InterruptedError(name)))
  return {
    signal: stop.signal,
    async during(work) {
      try {
        return await work()
      } catch (error) {
        throw stop.signal.aborted ? stop.signal.reason : error
      }
    },
  }
}
