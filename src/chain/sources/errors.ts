import { CodedError, GeneralError } from '../../../backend/src/protocol/coded-error.js'

type ChainSourceErrorCode =
  /**
   * It could not be reached, or was busy or too slow, or rests after that. Other questions will fare no better: try again
   * later.
   */
  | 'NO_ANSWER'
  /** Its answer does not fit the question. */
  | 'BAD_ANSWER'
  /** It does not know the output that it was asked about. */
  | 'NOT_KNOWN'
  /** A transaction is longer than requested. */
  | 'TOO_LARGE'

export class ChainSourceError extends GeneralError<ChainSourceErrorCode> {
  override readonly name = 'ChainSourceError'
}

/** The last failure of a part of the host since the start, also if it works again. */
export interface LastError {
  /** In milliseconds since 1970. */
  at: number
  message: string
}

/** A list of chain sources cannot be parsed. The message begins with "must", for the name of the setting before it. */
export class SourceAddressError extends CodedError {
  override readonly name = 'SourceAddressError'
  readonly code = 'BAD_SOURCE'
}

/** Why a branch of the tree cannot be followed for now. */
type FollowErrorCode =
  /** The chain source does not know a transaction that it must know. */
  | 'NOT_KNOWN'
  /** It names a spender that does not spend. */
  | 'NO_SPEND'
  /** The ancestors that verify a transaction are longer than a submission may be. */
  | 'TOO_LARGE'
  /** They are more than it may have. */
  | 'TOO_MANY'
  /** It is unmined, and so were enough others that were followed before, or too many of its ancestors. */
  | 'UNPROVEN'
  /** The node refused a transaction of the source. */
  | 'REFUSED'

/** A branch of the tree cannot be followed for now. */
export class FollowError extends GeneralError<FollowErrorCode> {
  override readonly name = 'FollowError'
}

/** Whether the source did not answer, which says nothing about the question. */
export function isOutage(error: unknown): boolean {
  return error instanceof ChainSourceError && error.code === 'NO_ANSWER'
}

/** Whether an error concerns one branch alone: others may fare better. */
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
