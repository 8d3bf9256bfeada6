import type { STEAK } from '@bsv/sdk'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { AnswerError, retryAfter } from '../../gateway/http/errors.js'
import type { Limits } from '../config/limits.js'

/** A submitted transaction. Can be posted to another thread unchanged. */
export interface Submission {
  /** A `Uint8Array` with its own buffer, not a view into a pool. */
  beef: Uint8Array
  topics: string[]
  /** The id of the HTTP request, for log lines. */
  requestId?: string
  /** The sender; without one, no client's share is used up. */
  client?: string
  /** How many submissions of the same client are already in the queue. */
  ahead?: number
}

export type Submit = (submission: Submission) => Promise<STEAK>

/**
 * Limits how many submissions are in progress or waiting, in total and per client, and how many bytes of memory their
 * bodies hold. A single submission is accepted however large it is.
 *
 * Each starts in its own turn of the event loop, as reading a BEEF is not interruptible, and many may arrive at once.
 */
export function queueSubmissions(
  submit: Submit,
  limits: Pick<Limits, 'maxSubmissions' | 'maxClientSubmissions' | 'maxSubmissionBytes'>,
): Submit {
  const { maxSubmissions, maxClientSubmissions, maxSubmissionBytes } = limits
  const countByClient = new Map<string, number>()
  let count = 0
  let bytes = 0
  const leave = (client: string): void => {
    const left = (countByClient.get(client) ?? 1) - 1
    if (left > 0) countByClient.set(client, left)
    else countByClient.delete(client)
  }
  return async (submission) => {
    const { client } = submission
    const { length } = submission.beef
    const ahead = client === undefined ? 0 : (countByClient.get(client) ?? 0)
    if (ahead >= maxClientSubmissions)
      throw new AnswerError(
        'RATE_LIMITED',
        `${ahead} of your submissions are already waiting; send more once they are answered`,
        { headers: retryAfter('NOT_READY') },
      )
    if (count >= maxSubmissions || (count > 0 && bytes + length > maxSubmissionBytes))
      // The host is busy; the client has not asked too much: so 503, not 429.
      throw new AnswerError('NOT_READY', `${count} submissions are already waiting; try again`)
    count++
    bytes += length
    if (client !== undefined) countByClient.set(client, ahead + 1)
    try {
      await yieldToEventLoop('submitting')
      return await submit({ ...submission, ahead })
    } finally {
      count--
      bytes -= length
      if (client !== undefined) leave(client)
    }
  }
}
