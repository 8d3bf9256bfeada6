import type { Network } from '../../../backend/src/protocol/address.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { Profile } from '../../../backend/src/protocol/profile.js'
import type { FactStore, GraphReads } from '../../../backend/src/read/fact-store.js'
import type { TreeTerms } from '../../../backend/src/read/name-offer.js'
import type { TreeProgress } from './as-of.js'
import type { RequestBodies } from './request-body.js'
import type { ResponseCache } from './stored-response.js'

/** Limits of a single request (`docs/settings.md`). */
export interface GatewayLimits {
  /** The longest JSON of a directory that paths may lead into, in bytes; all those on one path may have twice as much. */
  maxDirectoryBytes: number
  /** The longest body that a patch may make, in bytes: as for content inscribed as a whole. */
  maxContentBytes: number
  /** The BEEF of a page of a lookup, in bytes; a page has at least one output. As JSON it is four times as long. */
  maxPageBytes: number
  /** The most bytes of MAP in a record; no more than the default is ever stored. */
  maxMapBytes: number
}

/** What the routes of a gateway share. */
export interface GatewayParts extends GatewayLimits {
  /** The graph with blocked outputs: a blocked ancestor is still evidence of where an output comes from. */
  graph: FactStore
  /** The graph without blocked outputs, and for content without tips that are still unknown. */
  store: GraphReads
  responses: ResponseCache
  bodies: RequestBodies
  /** The `Content-Security-Policy` of content that a browser would run. */
  policy: string
  profile: Profile
  network: Network
  deployment: Deployment | undefined
  genesis: Outpoint | undefined
  tree: TreeTerms | undefined
  progress: TreeProgress
  /** Whether the host asks the network about transactions: then mining continues from what is proven or seen. */
  asksNetwork: boolean
  path: string
}
