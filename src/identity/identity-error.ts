import { GeneralError } from '../../backend/src/protocol/coded-error.js'

export type IdentityErrorCode =
  /** Neither the key nor the wallet can spend the name. */
  | 'NOT_YOURS'
  /** The lock is no identity binding for this name at this place. */
  | 'BAD_LOCK'
  /** The binding has fields that are not known here, which the other layout has no place for. */
  | 'UNKNOWN_FIELDS'
  /** The layout has no place for an attribute. */
  | 'BAD_PROFILE'
  /** The bytes do not hold the transaction of the name, as it was resolved. */
  | 'BAD_SOURCE'

/** A name that was not bound or moved: the caller's fault. */
export class IdentityError extends GeneralError<IdentityErrorCode> {
  override readonly name = 'IdentityError'
}
