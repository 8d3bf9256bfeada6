import type { Response } from 'express'
import { Slices } from './slices.js'

/** Whoever asked has left: nothing is to be answered, and nothing went wrong. */
export class ReaderLeftError extends Error {
  override readonly name = 'ReaderLeftError'

  constructor() {
    super('the reader has left')
  }
}

/**
 * A store as it is read for one answer that may take any number of reads before its first byte. A reader that has left
 * ends the reading with the next of them, and readers of other answers come between: the embedded store answers within
 * the thread, so that a long row of reads would otherwise be one piece of work.
 *
 * @returns The store, whose methods throw {@link ReaderLeftError} from the moment on at which the response is closed.
 */
export function readingFor<Store extends object>(response: Response, store: Store): Store {
  const slices = new Slices()
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...given: unknown[]): unknown => {
        if (response.destroyed) throw new ReaderLeftError()
        const result: unknown = value.apply(target, given)
        return result instanceof Promise ? slices.rest().then(() => result) : result
      }
    },
  })
}

/** A signal for reads that go on for long inside the store; it is aborted with {@link ReaderLeftError}. */
export function leavingOf(response: Response): AbortSignal {
  const leaving = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) leaving.abort(new ReaderLeftError())
  })
  return leaving.signal
}
