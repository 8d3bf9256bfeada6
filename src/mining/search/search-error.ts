import { CodedError } from '../../../backend/src/protocol/coded-error.js'

export type SearchErrorCode =
  /** No seed of a node: neither 32 bytes nor none. */
  | 'BAD_SEED'
  /** Not one character that names are made of. */
  | 'BAD_CHARACTER'
  /** Not a whole number of bits from 1 to 64. */
  | 'BAD_DIFFICULTY'
  /** A prefix for nonces that is too long. */
  | 'BAD_PREFIX'
  /** Not a whole number of workers, or more than anyone has cores. */
  | 'BAD_WORKERS'
  /** Workers, or the kernel that was asked for, are not to be had here. */
  | 'UNAVAILABLE'
  /** A worker broke off, or could not be started. */
  | 'WORKER_FAILED'
  /** What a worker gave as found does not meet the difficulty, or does not start with the prefix. */
  | 'BAD_NONCE'

/** A search that cannot start, or that came to no good end; the message is one sentence about what it was. */
export class SearchError extends CodedError<SearchErrorCode> {
  override readonly name = 'SearchError'
}
