import type { LostConflictError } from '../../../backend/src/graph/errors.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { AnswerError, NotReadyError } from '../../gateway/http/errors.js'

/** A submission refused for what it is: submitted again, it is refused again. */
export abstract class SubmissionError extends AnswerError {}

/** The first line of a verifier's message, cut short: it may quote a stranger, and the state of a stack follows it. */
export function verdictOf(error: unknown): string {
  const [reason = ''] = messageOf(error).split('\n')
  return reason.length > 300 ? `${reason.slice(0, 300)}…` : reason
}

export class InvalidSubmissionError extends SubmissionError {
  override readonly name = 'InvalidSubmissionError'
  readonly code = 'BAD_BODY'
}

export class SubmissionTooLargeError extends SubmissionError {
  override readonly name = 'SubmissionTooLargeError'
  readonly code = 'TOO_LARGE'
}

export class UnknownTopicError extends SubmissionError {
  override readonly name = 'UnknownTopicError'
  readonly code = 'BAD_BODY'

  constructor(readonly topic: string) {
    super(`this host has no topic ${JSON.stringify(topic)}`)
  }
}

/** A submission spends what an admitted transaction already spends, or the network rejected it. */
export class ConflictError extends SubmissionError {
  override readonly name = 'ConflictError'
  readonly code = 'CONFLICT'
  declare readonly data: { txid: string }

  /** The transaction that counts is sent as the `txid` of the answer; of a rejected one, its own. */
  constructor(readonly lost: Pick<LostConflictError, 'message' | 'txid' | 'reason'>) {
    super(lost.message, { data: { txid: lost.reason.txid } })
  }
}

/** The queue is full. The host is busy, the client has not asked too much: so 503, not 429. */
export class QueueFullError extends NotReadyError {
  constructor(waiting: number) {
    super(`${waiting} submissions are already waiting; try again`)
  }
}

export class ClientQueueFullError extends AnswerError {
  override readonly name = 'ClientQueueFullError'
  readonly code = 'RATE_LIMITED'
  override readonly headers = { 'Retry-After': '5' }

  constructor(waiting: number) {
    super(`${waiting} of your submissions are already waiting; send more once they are answered`)
  }
}

/** One write in progress takes long: nothing of this one was stored. */
export class WriteInProgressError extends NotReadyError {}

/** Too much is built on something unproven: more is taken once that is mined. */
export class UnprovenLineError extends NotReadyError {
  override readonly headers = { 'Retry-After': '600' }
}

/** Other submissions kept this one from being verified in time. */
export class VerificationTimeoutError extends NotReadyError {
  override readonly headers = { 'Retry-After': '30' }

  constructor(timeout: number) {
    super(`the submission could not be verified within ${timeout} ms; try again later`)
  }
}

/** Says nothing about the submission: the next one gets a new thread. */
export class WorkerEndedError extends NotReadyError {
  constructor(code?: number, cause?: unknown) {
    super('the worker thread for large submissions has crashed; try again', {
      cause: cause ?? `it exited with code ${code}`,
    })
  }
}
