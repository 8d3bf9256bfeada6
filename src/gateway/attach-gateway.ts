import { type ErrorRequestHandler, type RequestHandler, Router } from 'express'
import { pino } from 'pino'
import type { BlocklistReader } from '../../backend/src/graph/blocklist.js'
import { BlocklistFilter } from '../../backend/src/graph/blocklist-filter.js'
import type { GraphReader } from '../../backend/src/graph/graph-store.js'
import type { Network } from '../../backend/src/protocol/address.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES, type Profile } from '../../backend/src/protocol/profile.js'
import { CONTENT_PATH, contentHandlers } from './content/content.js'
import { crossOrigin } from './http/cross-origin.js'
import { type ErrorResponseOptions, errorResponse } from './http/errors.js'
import { GATEWAY_LIMITS, type GatewayLimits } from './http/gateway-limits.js'
import { RequestBodies } from './http/request-body.js'
import { sandboxPolicy } from './http/security-headers.js'
import { metadataRoutes } from './metadata/metadata.js'
import { provenanceRoutes } from './metadata/provenance.js'
import { namesRoutes } from './names/names.js'
import { previewRoutes } from './preview/preview.js'
import { streamRoutes } from './streams/stream.js'

/** Where what is served is read. */
export interface GatewayStores {
  /** The admitted graph, with what is blocked in it: nothing of that is served. */
  graph: GraphReader & { readonly blocklist: BlocklistReader }
}

export interface GatewayOptions {
  /** Below which paths the routes are, and what directories and streams are like; mainnet's where nothing is given. */
  profile?: Profile
  /** Whose addresses owners have; `main` where nothing is given. */
  network?: Network
  /** Of the tree that the host follows; the profile's where nothing is given. `undefined` given on purpose: none, no proofs. */
  genesis?: Outpoint | undefined
  /** Directives that join the sandbox of content that a browser would run, as `frame-ancestors 'self'`. */
  contentPolicy?: string | undefined
  limits?: Partial<GatewayLimits>
  /** Whether these routes let pages of other origins read their answers; `false` where the host lets them itself. */
  crossOrigin?: boolean
  /** Takes what went wrong here, which is said to nobody else; where nothing is given, it goes to standard output in JSON. */
  logger?: ErrorResponseOptions['logger']
  /** Reads the bodies of requests; where nothing is given, none that is compressed, and each up to its own limit. */
  bodies?: RequestBodies
}

/** What is asked of an Express app: so little that those of Express 4 have it, too. */
export interface GatewayApp {
  get(path: RegExp, ...handlers: (RequestHandler | ErrorRequestHandler)[]): unknown
  options(path: RegExp, ...handlers: RequestHandler[]): unknown
  use(handler: RequestHandler): unknown
}

/**
 * Puts the reading of the graph on an Express app: content, and below the profile's prefixes names, streams, metadata,
 * previews and provenance. What they answer is `spec/http.md`'s, in every host; paths that are not theirs go on to whatever
 * stands behind them, so it is called before the app's last word, its 404. OverlayExpress says that in `start`.
 *
 * It is called before parsers of bodies, too: these routes read bodies by themselves, each up to its own limit, and take one
 * that is parsed already only where it was parsed as JSON.
 *
 * Errors of these routes are answered in the gateway's shape, `{"error","code"}`, and no other error of the app is touched.
 * Nothing is limited by client: a host that is open to strangers puts its limits before these routes.
 *
 * The app may be of Express 4, as that of OverlayExpress: the handler that stands straight on it hands its errors on by
 * itself, and all others stand in a router of this package's own Express.
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
  // Straight on the app: a router of its own takes time that `npm run bench gateway` shows.
  const content = contentHandlers({ store, directoryContentTypes, policy, maxDirectoryBytes, maxPathBytes })
  app.get(CONTENT_PATH, ...origins, ...content, errors)
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
