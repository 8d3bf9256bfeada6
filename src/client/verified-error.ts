import { GeneralError } from '../../backend/src/protocol/coded-error.js'

/** The step at which a verified fetch failed. */
export type VerificationStep =
  /** The requested resource. */
  | 'resource'
  /** That the name descends from the genesis. */
  | 'name'
  /** Where the ordinal is now: never proven, only agreed upon. */
  | 'tip'
  /** The steps of the ordinal, from its origin. */
  | 'provenance'
  /** A directory on the path. */
  | 'directory'
  /** The output with the bytes. */
  | 'content'
  /** A later chunk of a stream. */
  | 'stream'
  /** The block headers. */
  | 'headers'

export type VerifiedFetchErrorCode =
  /** Neither a name nor an outpoint, or a path with a broken escape. */
  | 'BAD_RESOURCE'
  /** Every gateway that answered says that the name is not claimed. Nobody can prove that. */
  | 'NOT_CLAIMED'
  /** What gateways showed is invalid. */
  | 'NOT_PROVEN'
  /** The gateways do not have it. Nobody can prove that either. */
  | 'NOT_FOUND'
  /** The operator of a gateway has blocked it, and no other gateway shows it. */
  | 'BLOCKED'
  /** No gateway gave an answer that could be checked, within the limits. */
  | 'NO_ANSWER'
  /** The gateways do not agree as far as required. */
  | 'NO_AGREEMENT'
  /** The chain tracker did not answer, so nothing was confirmed or refuted. */
  | 'NO_HEADERS'
  /** A directory on the path is not one, or too long. */
  | 'BAD_DIRECTORY'
  /** A patch cannot be applied, or its result is too long. */
  | 'BAD_PATCH'
  /** The path leads through too many directories. */
  | 'NESTING_TOO_DEEP'

export interface GatewayReport {
  gateway: string
  message: string
  error?: Error
  /** The gateway says that it does not have the resource. */
  isAbsent?: true
}

/** Nothing was verified, and no bytes are returned. Names the step, and what each gateway did there. */
export class VerifiedFetchError extends GeneralError<VerifiedFetchErrorCode> {
  override readonly name = 'VerifiedFetchError'
  readonly step: VerificationStep
  readonly reports: readonly GatewayReport[]

  constructor(
    code: VerifiedFetchErrorCode,
    message: string,
    details: { step: VerificationStep; reports?: readonly GatewayReport[]; cause?: unknown },
  ) {
    super(code, message, details)
    this.step = details.step
    this.reports = details.reports ?? []
  }
}
