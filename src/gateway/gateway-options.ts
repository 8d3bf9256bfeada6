import type { BlocklistReader } from '../../backend/src/graph/blocklist.js'
import type { AdmissionsReader, GraphReader } from '../../backend/src/graph/graph-store.js'
import type { Network } from '../../backend/src/protocol/address.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { Profile } from '../../backend/src/protocol/profile.js'
import type { GatewayLimits } from './gateway-limits.js'
import type { ErrorLogger } from './http/errors.js'
import type { MissingAncestors } from './http/pending-origins.js'

/** The stores that the routes read. */
export interface GatewayStores {
  /** The admitted graph, blocked outputs included: the routes do not serve those. */
  graph: GraphReader & { readonly blocklist: BlocklistReader; readonly admissions: AdmissionsReader }
}

export interface GatewayOptions {
  /** The path prefixes of the routes, and the content types of directories and streams; mainnet's by default. */
  profile?: Profile
  /** The network of owners' addresses; `main` by default. */
  network?: Network
  /** The genesis of the host's name tree; the profile's by default. An explicit `undefined` means none, and no name proofs. */
  genesis?: Outpoint | undefined
  /** Directives that join the sandbox of active content, such as `frame-ancestors 'self'`. */
  contentPolicy?: string | undefined
  limits?: Partial<GatewayLimits>
  /** Whether these routes set CORS headers; `false` if the host does. */
  crossOrigin?: boolean
  /** If missing, the host fetches no missing ancestors of ordinals. */
  ancestors?: MissingAncestors
  /** Logs internal errors, which clients do not see; standard output in JSON by default. */
  logger?: ErrorLogger
}

type Handler = (...parameters: never[]) => unknown

/** The part of an Express app that is used, which Express 4 has too. Its types may be those of another copy of Express. */
export interface GatewayApp {
  get(path: RegExp, ...handlers: Handler[]): unknown
  options(path: RegExp, ...handlers: Handler[]): unknown
  use(handler: Handler): unknown
}
