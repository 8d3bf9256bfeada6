import { Semaphore } from 'async-mutex'
import type { Response } from 'express'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'

/** Whoever asked has left: nothing is to be answered, and nothing went wrong. */
export class ReaderLeftError extends Error {
  override readonly name = 'ReaderLeftError'

  constructor() {
    super('the client has disconnected')
  }
}

/** How long one answer may keep the thread before others have their turn, in milliseconds. */
const SLICE = 5
/** From how many reads on an answer is a long one. */
const SHORT_READS = 200
/** How many long answers are put together at a time in this process; the others wait in the order in which they came. */
const LONG_ANSWERS = 2

const longAnswers = new Semaphore(LONG_ANSWERS)

/** The reading for one answer that may take any number of reads before its first byte. */
export interface LongRead {
  /**
   * A store as it is read for the answer. A reader that has left ends the reading with the next read, and others are
   * answered between: the embedded store answers within the thread, so that a long row of reads would otherwise be one
   * piece of work.
   *
   * @returns The store, whose methods throw {@link ReaderLeftError} from the moment on at which the response is closed.
   */
  over<Store extends object>(store: Store): Store
}

/**
 * Puts an answer together that may be long. Most are short, and wait for nobody; one that turns out to be long waits until
 * fewer than {@link LONG_ANSWERS} others are put together, so that so many slices at the most lie between two turns of
 * everybody else, and so many histories are in memory.
 */
export async function longRead<Answer>(
  response: Response,
  work: (read: LongRead) => Promise<Answer>,
): Promise<Answer> {
  let since = performance.now()
  let reads = 0
  let waiting: Promise<() => void> | undefined
  const beforeRead = async (): Promise<void> => {
    reads++
    if (reads > SHORT_READS) {
      waiting ??= longAnswers.acquire().then(([, release]) => release)
      await waiting
      if (response.destroyed) throw new ReaderLeftError()
    }
    if (performance.now() - since < SLICE) return
    await yieldToEventLoop()
    since = performance.now()
  }
  const over = <Store extends object>(store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        // A role of the store.
        if (typeof value === 'object' && value !== null) return over(value)
        if (typeof value !== 'function') return value
        return (...given: unknown[]): unknown => {
          if (response.destroyed) throw new ReaderLeftError()
          const result: unknown = value.apply(target, given)
          return result instanceof Promise ? beforeRead().then(() => result) : result
        }
      },
    })
  try {
    return await work({ over })
  } finally {
    ;(await waiting)?.()
  }
}

/** A signal for reads that go on for long inside the store; it is aborted with {@link ReaderLeftError}. */
export function leavingOf(response: Response): AbortSignal {
  const leaving = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) leaving.abort(new ReaderLeftError())
  })
  return leaving.signal
}

/** Counts the transactions that were read for a response, if the host limits its clients by them. */
type CountTransactions = (transactions: number) => void

export function countTransactionsWith(response: Response, count: CountTransactions): void {
  response.locals.countTransactions = count
}

/** Reports how many transactions were read for a response. */
export function countTransactions(response: Response, transactions: number): void {
  const count: unknown = response.locals.countTransactions
  if (typeof count === 'function') (count as CountTransactions)(transactions)
}
