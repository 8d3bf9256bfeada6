import { MAX_MAP_BYTES } from '../../backend/src/graph/map-merge.js'
import type { Network } from '../../backend/src/protocol/address.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import type { Profile } from '../../backend/src/protocol/profile.js'
import type { AnsweringService } from '../../backend/src/read/answering-service.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { TreeProgress } from './http/as-of.js'
import type { ErrorLogger } from './http/errors.js'
import type { MissingAncestors } from './http/pending-origins.js'

export type LookupServices = (options: {
  deployment: Deployment | undefined
  asksNetwork: boolean
}) => Record<string, AnsweringService>

export interface GatewayStores {
  /** The admitted graph, blocked outputs included: the routes do not serve those. */
  graph: FactStore
  /** If missing, the host's engine answers all of `/lookup`. */
  lookupServices?: LookupServices
}

/** What follows the chain for a host, and fetches what is missing. */
export interface GatewayFollower {
  /** How far it has followed the tree of names. */
  progress: TreeProgress
  /** If missing, it fetches no missing ancestors of ordinals. */
  ancestors?: MissingAncestors
  /** Whether it asks the network which transactions it has. */
  asksNetwork: boolean
  /** The height of the chain, and how many blocks are not followed yet. */
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
  /** What the paths of all routes begin with, such as `/minetree`; by default, nothing. */
  path?: string
  /** The public URL of the host, without that path. */
  publicUrl?: string | undefined
  /** Names and outpoints are hosts below this one; by default, they have none. */
  gatewayHost?: string | undefined
  /** Hosts below `gatewayHost` that are the host's own, and show no name. */
  ownHosts?: readonly string[]
  /** How many proxies are in front of the host, which say in `X-Forwarded-Host` what they were asked for; 0 by default. */
  trustedProxies?: number
  /** Whether pages below `/content/` are sent on to the host of their outpoint, so that they get an origin of their own. */
  redirectPages?: boolean
  /**
   * Whether there are the pages of the explorer, and the one that mines. At the root, they have `/`. A program that is bundled says
   * in which folder the files of `dist/pages` are.
   */
  explorer?: boolean | { files: URL }
  /** Whether the app has `/submit` and `/lookup` of an engine, which wallets ask for by another path; it has, by default. */
  overlay?: boolean
  /** Directives that join the sandbox of active content, such as `frame-ancestors 'self'`. */
  contentPolicy?: string | undefined
  limits?: Partial<GatewayLimits>
  /** Whether these routes set CORS headers; `false` if the host does. */
  crossOrigin?: boolean
  /** By default, the chain is not followed. */
  follower?: GatewayFollower
  /** Logs internal errors, which clients do not see; standard output in JSON by default. */
  logger?: ErrorLogger
}

/** What one request may cost (`docs/settings.md`). */
export interface GatewayLimits {
  /** The longest JSON of a directory that paths lead into, in bytes; those on one path may have twice as much together. */
  maxDirectoryBytes: number
  /** The longest body that a patch may make, in bytes: as of content that is inscribed whole. */
  maxContentBytes: number
  /** The BEEF of a page of a lookup, in bytes; a page has at least one output. In JSON it is four times as long. */
  maxPageBytes: number
  /** How many bytes of MAP a record shows; no more than the default is ever stored. */
  maxMapBytes: number
}

export const GATEWAY_LIMITS: GatewayLimits = {
  maxDirectoryBytes: 1024 * 1024,
  maxContentBytes: 64 * 1024 * 1024,
  // Clients of SDK 3 take 4 MiB of JSON.
  maxPageBytes: 1_000_000,
  maxMapBytes: MAX_MAP_BYTES,
}

type Handler = (...parameters: never[]) => unknown

/** The part of an Express app that is used, which Express 4 has too. Its types may be those of another copy of Express. */
export interface GatewayApp {
  get(path: RegExp, ...handlers: Handler[]): unknown
  options(path: RegExp, ...handlers: Handler[]): unknown
  use(handler: Handler): unknown
  /** Takes a request. */
  (...parameters: never[]): unknown
}
