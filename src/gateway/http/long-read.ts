import { Semaphore } from 'async-mutex'
import type { RequestHandler, Response } from 'express'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import type { Pace } from '../../../backend/src/read/provenance.js'

export class ReaderLeftError extends Error {
  override readonly name = 'ReaderLeftError'

  constructor() {
    super('the client has disconnected')
  }
}

/** How long one response may keep the thread before others continue, in milliseconds. */
const SLICE = 5
/** A response that needs more reads than this is long. */
const SHORT_READS = 200
/** The most long responses prepared in parallel in this process; others queue. */
const LONG_ANSWERS = 2

const longAnswers = new Semaphore(LONG_ANSWERS)

/**
 * Prepares a response that may be long. Most are short and do not wait. One that turns out to be long waits until fewer than
 * {@link LONG_ANSWERS} others are being prepared: so other requests wait for few slices, and few histories are in memory.
 *
 * @param work Must call its argument before each read, to yield to the event loop; the argument throws {@link ReaderLeftError}
 * once the response is closed. Reads are synchronous, so a long series would otherwise block the thread.
 */
export async function longRead<Answer>(
  response: Response,
  work: (pace: Pace) => Promise<Answer>,
): Promise<Answer> {
  let since = monotonic()
  let reads = 0
  let waiting: Promise<() => void> | undefined
  const pace: Pace = () => {
    if (response.destroyed) throw new ReaderLeftError()
    reads++
    return reads > SHORT_READS || monotonic() - since >= SLICE ? pauseNow() : undefined
  }
  const pauseNow = async (): Promise<void> => {
    if (reads > SHORT_READS) {
      waiting ??= longAnswers.acquire().then(([, release]) => release)
      await waiting
      if (response.destroyed) throw new ReaderLeftError()
    }
    if (monotonic() - since < SLICE) return
    await yieldToEventLoop()
    since = monotonic()
  }
  try {
    return await work(pace)
  } finally {
    ;(await waiting)?.()
  }
}

/** A signal for long reads inside the store, aborted with {@link ReaderLeftError} when the client leaves. */
export function leavingOf(response: Response): AbortSignal {
  const leaving = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) leaving.abort(new ReaderLeftError())
  })
  return leaving.signal
}

type CountTransactions = (transactions: number) => void

export function countTransactionsWith(response: Response, count: CountTransactions): void {
  response.locals.countTransactions = count
}

export function countTransactions(response: Response, transactions: number): void {
  const count: unknown = response.locals.countTransactions
  if (typeof count === 'function') (count as CountTransactions)(transactions)
}

/** A millisecond of CPU time counts as this many transactions of an answer; 2.5 milliseconds count as a read. */
const TRANSACTIONS_PER_MILLISECOND = 40

export function countMilliseconds(response: Response, milliseconds: number): void {
  countTransactions(response, milliseconds * TRANSACTIONS_PER_MILLISECOND)
}

/** Waits until the stores of a host of another engine are open; no handlers if stores need no opening. */
export function whenOpened({ opened }: Pick<GraphReads, 'opened'>): RequestHandler[] {
  if (opened === undefined) return []
  return [(_request, _response, next) => void opened().then(() => next(), next)]
}
