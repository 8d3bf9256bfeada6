import { type ErrorRequestHandler, type RequestHandler, Router } from 'express'
import { pino } from 'pino'
import type { BlocklistReader } from '../../backend/src/graph/blocklist.js'
import { BlocklistFilter } from '../../backend/src/graph/blocklist-filter.js'
import type { GraphReader } from '../../backend/src/graph/graph-store.js'
import type { Network } from '../../backend/src/protocol/address.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES, type Profile } from '../../backend/src/protocol/profile.js'
import { CONTENT_PATH, contentHandler } from './content/content.js'
import { GATEWAY_LIMITS, type GatewayLimits } from './gateway-limits.js'
import { type ErrorResponseOptions, errorResponse } from './http/error-response.js'
import { RequestBodies } from './http/request-body.js'
import { crossOrigin, sandboxPolicy } from './http/security-headers.js'
import { metadataRoutes } from './metadata/metadata.js'
import { provenanceRoutes } from './metadata/provenance.js'
import { namesRoutes } from './names/names.js'
import { previewRoutes } from './preview/preview.js'
import { streamRoutes } from './streams/stream.js'

/** The stores that the routes read. */
export interface GatewayStores {
  /** The admitted graph, blocked outputs included: the routes do not serve those. */
  graph: GraphReader & { readonly blocklist: BlocklistReader }
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
  /** Logs internal errors, which clients do not see; standard output in JSON by default. */
  logger?: ErrorResponseOptions['logger']
  /** Reads request bodies; by default no compressed ones, and each up to its own limit. */
  bodies?: RequestBodies
}

/** The part of an Express app that is used, which Express 4 has too. */
export interface GatewayApp {
  get(path: RegExp, ...handlers: (RequestHandler | ErrorRequestHandler)[]): unknown
  options(path: RegExp, ...handlers: RequestHandler[]): unknown
  use(handler: RequestHandler): unknown
}

/**
 * Adds the routes that read the graph to an Express app: content, and below the profile's prefixes names, streams, metadata,
 * previews and provenance. `spec/http.md` specifies them, for every host. Other paths are passed on, so call this before the
 * app's 404 handler, which OverlayExpress adds in `start`.
 *
 * Call it before body parsers too: these routes read bodies themselves, each up to its own limit, and accept a parsed body
 * only if it was parsed as JSON.
 *
 * Errors of these routes have the gateway's shape, `{"error","code"}`; other errors of the app are left alone. There are no
 * limits per client: a public host puts its own before these routes.
 *
 * The app may be of Express 4, as that of OverlayExpress: the one handler directly on it passes on its errors itself, and all
 * others are in a router of this package's own Express.
 */
export function attachGateway(app: GatewayApp, { graph }: GatewayStores, options: GatewayOptions = {}): void {
  const { profile = PROFILES.mainnet, network = 'main', logger = pino({ name: 'minetree' }) } = options
  const { bodies = new RequestBodies() } = options
  const genesis = 'genesis' in options ? options.genesis : deploymentOf(profile)?.genesis
  const limits = { ...GATEWAY_LIMITS, ...options.limits }
  const { maxPointers, maxOrigins, maxDirectoryBytes, maxMapBytes } = limits
  const maxPathBytes = Math.max(limits.maxDirectoryPathBytes, maxDirectoryBytes)
  const { directoryContentTypes, gatewayPrefixes: prefixes, streamChunkContentTypes: chunkTypes } = profile
  const store = new BlocklistFilter(graph)
  const policy = sandboxPolicy(options.contentPolicy)
  const errors = errorResponse({ logger })
  const origins = options.crossOrigin === false ? [] : [crossOrigin()]
  const routes = Router()
  for (const handler of origins) {
    app.options(CONTENT_PATH, handler)
    routes.use([...prefixes, ...profile.namesPrefixes], handler)
  }
  // Directly on the app: a router of its own takes time that `npm run bench gateway` shows.
  const content = contentHandler({ store, directoryContentTypes, policy, maxDirectoryBytes, maxPathBytes })
  app.get(CONTENT_PATH, ...origins, content, errors)
  routes
    .use(
      namesRoutes({
        store,
        network,
        prefixes: profile.namesPrefixes,
        genesis,
        maxOrigins,
        maxMapBytes,
        bodies,
      }),
    )
    .use(streamRoutes({ store, prefixes, chunkTypes, policy }))
    .use(metadataRoutes({ store, network, prefixes, maxPointers, maxMapBytes, bodies }))
    .use(previewRoutes({ prefixes, policy, bodies }))
    .use(provenanceRoutes({ store, evidence: graph, prefixes }))
    .use(errors)
  app.use(routes)
}
