import { MAX_MAP_BYTES } from '../../backend/src/graph/map-merge.js'
import type { Network } from '../../backend/src/protocol/address.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import type { Profile } from '../../backend/src/protocol/profile.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { AnsweringService } from '../../backend/src/read/provenance.js'
import type { TreeProgress } from './http/as-of.js'
import type { ErrorLogger } from './http/errors.js'
import type { GatewayLimits } from './http/gateway-parts.js'
import type { MissingAncestors } from './http/pending-origins.js'

export type LookupServices = (options: {
  deployment: Deployment | undefined
  asksNetwork: boolean
}) => Record<string, AnsweringService>

export interface GatewayStores {
  /** The admitted graph, including blocked outputs, which the routes do not serve. */
  graph: FactStore
  /** If missing, the host's engine answers all of `/lookup`. */
  lookupServices?: LookupServices
}

export interface GatewayFollower {
  progress: TreeProgress
  /** If missing, it does not fetch missing ancestors of ordinals. */
  ancestors?: MissingAncestors
  asksNetwork: boolean
  /** The height of the chain, and how many blocks have not been followed yet. */
  chain?: () => ChainPlace | Promise<ChainPlace>
}

interface ChainPlace {
  height?: number | undefined
  lag?: number | undefined
}

export interface GatewayOptions {
  /** The paths of the routes, and the content types of directories and streams; mainnet's by default. */
  profile?: Profile
  /** The network of owners' addresses; `main` by default. */
  network?: Network
  /** The host's name tree; the profile's by default. An explicit `undefined` means none, and no name proofs. */
  deployment?: Deployment | undefined
  /** The common prefix of all paths, such as `/minetree`; empty by default. */
  path?: string
  /** The public URL of the host, without `path`. */
  publicUrl?: string | undefined
  /** The domain whose subdomains are hosts of names and outpoints; by default, there are none. */
  gatewayHost?: string | undefined
  /** Hosts below `gatewayHost` that are the host's own, rather than names. */
  ownHosts?: readonly string[]
  /** How many proxies before the host set `X-Forwarded-Host`; 0 by default. */
  trustedProxies?: number
  /** Whether pages below `/content/` redirect to the host of their outpoint, so that each gets its own origin. */
  redirectPages?: boolean
  /**
   * Whether to have the pages of the explorer, and the mine page. At the root, they include `/`. A bundled program names the folder
   * with the files of `dist/pages`.
   */
  explorer?: boolean | { files: URL }
  /** Whether the app has an engine's `/submit` and `/lookup`, which wallets reach by another path; true by default. */
  overlay?: boolean
  /** Directives to add to the sandbox of active content, such as `frame-ancestors 'self'`. */
  contentPolicy?: string | undefined
  limits?: Partial<GatewayLimits>
  /** Whether these routes set CORS headers; `false` if the host does. */
  crossOrigin?: boolean
  /** By default, the chain is not followed. */
  follower?: GatewayFollower
  /** Logs internal errors, which clients do not see; standard output in JSON by default. */
  logger?: ErrorLogger
}

export const GATEWAY_LIMITS: GatewayLimits = {
  maxDirectoryBytes: 1024 * 1024,
  maxContentBytes: 64 * 1024 * 1024,
  // Clients of SDK 3 accept 4 MiB of JSON.
  maxPageBytes: 1_000_000,
  maxMapBytes: MAX_MAP_BYTES,
}

type Handler = (...parameters: never[]) => unknown

/** The part of an Express app that is used; Express 4 has it too. Its types may come from another copy of Express. */
export interface GatewayApp {
  get(path: RegExp, ...handlers: Handler[]): unknown
  options(path: RegExp, ...handlers: Handler[]): unknown
  use(handler: Handler): unknown
  /** Takes a request. */
  (...parameters: never[]): unknown
}
