import type { IndexReport } from './resolve.js'

/** Why a name was not resolved. */
export type ResolutionErrorCode =
  /** It is none: 1 to 255 characters of `a-z 0-9 -`. */
  | 'BAD_NAME'
  /** A source is neither one nor the URL of a server. */
  | 'BAD_SOURCE'
  /** Every index that answered says that it is not claimed. */
  | 'NOT_CLAIMED'
  /** No index showed anything that held. */
  | 'NO_PROOF'
  /** Indexes show what cannot all be true, and nothing that was checked says which is. */
  | 'DISAGREEMENT'

/** A name that was not resolved, with what each index said. */
export class ResolutionError extends Error {
  override readonly name = 'ResolutionError'

  constructor(
    readonly code: ResolutionErrorCode,
    message: string,
    readonly reports: IndexReport[] = [],
  ) {
    super(message)
  }
}
