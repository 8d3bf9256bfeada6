import type { ChainPosition } from '../protocol/block-rules.js'
import type { HeaderStore } from '../protocol/header-store.js'
import type { GraphStore } from './graph-store.js'

/** Facts about the store itself, such as the tree that it holds. */
export interface Settings {
  /** Undefined if it was never set. */
  get(name: string): Promise<string | undefined>
  /**
   * Sets it. One that derivation depends on is pinned: of several who set it at once, over one log, the first counts.
   *
   * @param from What a pinned one has to be to be replaced; by default, it must not be set yet.
   */
  set(name: string, value: string, from?: string): Promise<void>
}

/** A graph store as its host opens it: readers and services need no more than the graph. */
export interface HostStore extends GraphStore {
  readonly settings: Settings
  /** Block headers, if the host keeps its own. */
  readonly headers: HeaderStore
  /** Whether the database answers. @throws what the driver throws if it does not. */
  ping(): Promise<void>
  /** Whether it holds no transaction. */
  isEmpty(): Promise<boolean>
}

/** A verified submission that no block can hold yet, and from when one can. */
export interface HeldSubmission {
  txid: string
  lock: ChainPosition
  beef: Uint8Array
}

/** Submissions that wait until they are final. They are in no answer and in no conflict. */
export interface HeldSubmissions {
  /** Stores a submission; over the limit, those that would wait longest are deleted. */
  hold(submission: HeldSubmission, limits: { maxCount: number }): Promise<void>
  held(txid: string): Promise<HeldSubmission | undefined>
  /** Some of those that are final at a position, the shortest locks first. */
  heldUntil(position: ChainPosition, limit: number): Promise<HeldSubmission[]>
  release(txid: string): Promise<void>
}
