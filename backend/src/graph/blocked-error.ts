import { CodedError } from '../protocol/coded-error.js'
import type { BlockedKind } from './blocklist.js'

/** What was asked for leads to something that the operator of this host has blocked. Why, is not said: that is the operator's. */
export class BlockedError extends CodedError<'BLOCKED'> {
  override readonly name = 'BlockedError'

  /** @param kind By what it is blocked. */
  constructor(readonly kind: BlockedKind) {
    super('BLOCKED', `the operator of this host has blocked this ${kind}`)
  }
}
