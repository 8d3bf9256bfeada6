import type { ChainPosition } from './finality.js'

/** A verified submission that no block can hold yet, and from when on one can. */
export interface HeldSubmission {
  txid: string
  lock: ChainPosition
  beef: Uint8Array
}

/** Submissions that wait until they are final. They are part of no answer and of no conflict. */
export interface HeldSubmissions {
  /** Keeps a submission; where there are more than may be, those go that would have to wait longest. */
  hold(submission: HeldSubmission, limits: { maxCount: number }): Promise<void>
  held(txid: string): Promise<HeldSubmission | undefined>
  /** Some of those that are over by a position, those first that were locked the shortest. */
  heldUntil(position: ChainPosition, limit: number): Promise<HeldSubmission[]>
  release(txid: string): Promise<void>
}
