// Without types of other packages: hosts that follow the chain give these to the gateway.

/** A block, up to which the tree of names was followed. The hash is missing where the chain tracker does not say it. */
export interface AsOf {
  height: number
  hash?: string | undefined
}

/** How far a host is that has not followed the tree to its end yet. What is not known is missing. */
export interface CatchUpProgress {
  height?: number | undefined
  chainHeight?: number | undefined
  asked?: number | undefined
  coins?: number | undefined
}

/**
 * How far a host has followed the tree of names (`docs/follow.md`, Absence). Until it has caught up once, what is not in its
 * store may exist: then no answer says that a name is free, a node live, or a list complete.
 */
export interface TreeProgress {
  /** Undefined if nothing is followed, or not to any known block yet. The same object until it changes. */
  readonly asOf: AsOf | undefined
  readonly isCatchingUp: boolean
  /** Whether it never was followed to its end, be it that nobody answers any more. */
  readonly isIncomplete: boolean
  /** How far it is, while it catches up. */
  progress(): CatchUpProgress
}
