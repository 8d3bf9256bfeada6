// No types of other packages: hosts that follow the chain pass these to the gateway.

/** A block up to which the name tree was followed. The hash is missing if the chain tracker does not provide it. */
export interface AsOf {
  height: number
  hash?: string | undefined
}

/** The progress of a host that has not followed the tree to its end yet. Unknown values are missing. */
export interface CatchUpProgress {
  height?: number | undefined
  chainHeight?: number | undefined
  asked?: number | undefined
  coins?: number | undefined
}

/**
 * How far a host has followed the name tree (`docs/follow.md`, Absence). Until it has caught up once, anything missing in
 * its store may exist: no answer then says that a name is free, a node live, or a list complete.
 */
export interface TreeProgress {
  /** Undefined if nothing is followed, or not up to a known block yet. The same object until it changes. */
  readonly asOf: AsOf | undefined
  readonly isCatchingUp: boolean
  /** Whether the tree was never followed to its end, even if nobody answers any more. */
  readonly isIncomplete: boolean
  progress(): CatchUpProgress
}
