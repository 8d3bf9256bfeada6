import type { BlockedKind } from './blocklist.js'

/** What was asked for leads to something that the operator of this host has blocked. Why, is not said: that is the operator's. */
export class BlockedError extends Error {
  override readonly name = 'BlockedError'
  readonly code = 'BLOCKED'

  /** @param kind By what it is blocked. */
  constructor(readonly kind: BlockedKind) {
    super(`the operator of this host has blocked this ${kind}`)
  }
}
