import type { STEAK } from '@bsv/sdk'
import { Mutex } from 'async-mutex'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import type { Limits } from '../config/limits.js'
import { ClientQueueFullError, QueueFullError } from './errors.js'

/** A submitted transaction. Can be posted to another thread as it is. */
export interface Submission {
  /** A `Uint8Array` with a buffer of its own: not a view into a pool. */
  beef: Uint8Array
  topics: string[]
  /** Of the HTTP request, for log lines about it. */
  requestId?: string
  /** Who sends it; without one, no client's share is used up. */
  client?: string
  /** How many submissions of the same client are already in the queue. */
  ahead?: number
}

export type Submit = (submission: Submission) => Promise<STEAK>

/**
 * Limits how many submissions are in progress or waiting, in all and per client, and how many bytes of memory their bodies
 * hold. A submission that comes alone is accepted however large it is.
 *
 * Each starts in a turn of the event loop of its own: reading a BEEF is one piece of work, and many may arrive at once.
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
    if (ahead >= maxClientSubmissions) throw new ClientQueueFullError(ahead)
    if (count >= maxSubmissions || (count > 0 && bytes + length > maxSubmissionBytes))
      throw new QueueFullError(count)
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

/** The one writer at a time of a process: submissions, reorg rounds, proofs from ARC and index maintenance wait for it. */
export class WriteLock {
  private readonly mutex = new Mutex()
  /** @throws NotReadyError while the index is incomplete: what is decided by half of one is wrong. */
  assertIndexComplete: () => void = () => {}
  /** Called after each write, which may have left work in the backlog. */
  onWritten: () => void = () => {}

  get isLocked(): boolean {
    return this.mutex.isLocked()
  }

  /**
   * Runs a write while no other is in progress.
   *
   * @param priority The highest goes first; of equals, the first to come. By default before any submission.
   */
  async run<Result>(write: () => Promise<Result>, priority = 0): Promise<Result> {
    try {
      return await this.mutex.runExclusive(async () => {
        this.assertIndexComplete()
        return await write()
      }, priority)
    } finally {
      this.onWritten()
    }
  }

  /** As {@link run}, for work on the backlog and on the index itself, which may be incomplete. */
  async runOnIndex<Result>(work: () => Promise<Result>): Promise<Result> {
    return await this.mutex.runExclusive(work)
  }
}

/** What is re-evaluated takes as long to write as if so many more bytes had come for each outpoint that it spends. */
const BYTES_PER_SPEND = 64
/** A client with other submissions in the queue waits as if this one were so much longer for each: clients take turns. */
const BYTES_PER_SUBMISSION = 16 * 1024

/**
 * The priority of a submission at the {@link WriteLock}: a small one waits for the write in progress, but not for all the
 * larger ones that came before it. By powers of two, so that of about equals the first to come goes first.
 *
 * @param submitted.bytes Length of the BEEF.
 * @param submitted.behind How many spends are re-evaluated because it comes.
 * @param submitted.ahead How many submissions of the same client are in the queue.
 */
export function submissionPriority(submitted: {
  bytes: number
  behind?: number
  ahead?: number | undefined
}): number {
  const { bytes, behind = 0, ahead = 0 } = submitted
  const weight = bytes + behind * BYTES_PER_SPEND + ahead * BYTES_PER_SUBMISSION
  return -Math.ceil(Math.log2(1 + weight / 1024))
}
