import { AnswerError } from '../../gateway/http/errors.js'

/** A submission that is refused for what it is: it would be again. */
export abstract class SubmissionError extends AnswerError {}

/** A submission whose scripts or proofs do not hold. */
export class InvalidSubmissionError extends SubmissionError {
  override readonly name = 'InvalidSubmissionError'
  readonly status = 400
  readonly code = 'BAD_BODY'
}

/** A BEEF with more of something than one submission may cost. */
export class SubmissionTooLargeError extends SubmissionError {
  override readonly name = 'SubmissionTooLargeError'
  readonly status = 413
  readonly code = 'TOO_LARGE'
}

/** A submission that names a topic which this host does not have. */
export class UnknownTopicError extends SubmissionError {
  override readonly name = 'UnknownTopicError'
  readonly status = 400
  readonly code = 'BAD_BODY'

  constructor(readonly topic: string) {
    super(`this host has no topic ${JSON.stringify(topic)}`)
  }
}

/** A submission that spends what an admitted transaction spends already. */
export class ConflictError extends SubmissionError {
  override readonly name = 'ConflictError'
  readonly status = 409
  readonly code = 'CONFLICT'
  override readonly data: { txid: string }

  /** @param options.winner The transaction that counts. */
  constructor({ txid, winner }: { txid: string; winner: string }) {
    super(
      `${txid} conflicts with ${winner}, which counts: they, or transactions they build on, spend the same output`,
    )
    this.data = { txid: winner }
  }
}

/** The source of block headers did not answer: nothing is known about the proof, so the caller may try again. */
export class ChainTrackerError extends AnswerError {
  override readonly name = 'ChainTrackerError'
  readonly status = 503
  readonly code = 'NOT_READY'
  override readonly headers = { 'Retry-After': '5' }
}
