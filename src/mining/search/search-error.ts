import { GeneralError } from '../../../backend/src/protocol/coded-error.js'

export type SearchErrorCode =
  /** A seed has 32 bytes or none. */
  | 'BAD_SEED'
  /** Not exactly one character that names may contain. */
  | 'BAD_CHARACTER'
  /** Not a whole number of bits from 1 to 64. */
  | 'BAD_DIFFICULTY'
  /** The nonce prefix is too long. */
  | 'BAD_PREFIX'
  /** Not a whole number of workers, or more than any machine has cores. */
  | 'BAD_WORKERS'
  /** Workers, or the requested kernel, are not available here. */
  | 'UNAVAILABLE'
  /** A worker failed, or could not be started. */
  | 'WORKER_FAILED'
  /** A worker reported a nonce that does not meet the difficulty, or does not start with the prefix. */
  | 'BAD_NONCE'

/** A search that cannot start, or that failed. */
export class SearchError extends GeneralError<SearchErrorCode> {
  override readonly name = 'SearchError'
}
