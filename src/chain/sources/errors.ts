import { CodedError, GeneralError } from '../../../backend/src/protocol/coded-error.js'

type ChainSourceErrorCode =
  /**
   * The source could not be reached, was busy or too slow, or is resting after that. Other questions will fare no better:
   * try again later.
   */
  | 'NO_ANSWER'
  /** The answer does not fit the question. */
  | 'BAD_ANSWER'
  /** The source does not know the output in question. */
  | 'NOT_KNOWN'
  /** A transaction is longer than allowed. */
  | 'TOO_LARGE'

export class ChainSourceError extends GeneralError<ChainSourceErrorCode> {
  override readonly name = 'ChainSourceError'
}

/** A list of chain sources cannot be parsed. The message begins with "must", to follow the name of the setting. */
export class SourceAddressError extends CodedError {
  override readonly name = 'SourceAddressError'
  readonly code = 'BAD_SOURCE'
}

/** Why a branch of the tree cannot be followed for now. */
type FollowErrorCode =
  /** The chain source does not know a transaction that it should know. */
  | 'NOT_KNOWN'
  /** The ancestors that verify a transaction are longer than a submission may be. */
  | 'TOO_LARGE'
  /** The ancestors are more than a submission may have. */
  | 'TOO_MANY'
  /** The transaction is unmined, and too many unmined ones were followed before, or too many of its ancestors are unmined. */
  | 'UNPROVEN'
  /** The node refused a transaction from the source. */
  | 'REFUSED'

/** A branch of the tree cannot be followed for now. */
export class FollowError extends GeneralError<FollowErrorCode> {
  override readonly name = 'FollowError'
}

/** Whether the source did not answer, which says nothing about the question. */
export function isOutage(error: unknown): boolean {
  return error instanceof ChainSourceError && error.code === 'NO_ANSWER'
}

/** Whether an error concerns a single branch; others may still succeed. */
export function isOfBranch(error: unknown): error is FollowError | ChainSourceError {
  return error instanceof FollowError || (error instanceof ChainSourceError && !isOutage(error))
}

/** Whether a transaction, or the ancestors that verify it, exceed a limit. */
export function isTooLarge(error: unknown): boolean {
  return (
    (error instanceof FollowError && error.code === 'TOO_LARGE') ||
    (error instanceof ChainSourceError && error.code === 'TOO_LARGE')
  )
}
