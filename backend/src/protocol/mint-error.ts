import { GeneralError } from './coded-error.js'

/** Which rule of a mint is broken; see `checkMint`, and `followUnprovenMint` for `NOT_STRICT`. */
export type MintErrorCode =
  | 'NOT_A_NODE'
  | 'OTHER_TREE'
  | 'BAD_UNLOCKING'
  | 'NOT_STRICT'
  | 'BAD_VERSION'
  | 'BAD_LOCK_TIME'
  | 'BAD_CHARACTER'
  | 'CLAIMED'
  | 'BAD_NONCE'
  | 'BAD_WORK'
  | 'TOO_LONG'
  | 'BAD_OUTPUT'

/** A transaction that is no mint of this tree. `vout` tells which output, for `BAD_OUTPUT`. */
export class MintError extends GeneralError<MintErrorCode> {
  override readonly name = 'MintError'
  readonly vout?: number

  constructor(code: MintErrorCode, message: string, options: { vout?: number; cause?: unknown } = {}) {
    super(code, message, options)
    this.vout = options.vout
  }
}
