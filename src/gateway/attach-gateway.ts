import { type ErrorRequestHandler, type Request, Router } from 'express'
import { pino } from 'pino'
import { BlocklistFilter } from '../../backend/src/graph/blocklist-filter.js'
import { checkedOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../backend/src/protocol/profile.js'
import { CONTENT_PATH, contentAnswers, contentHandler } from './content/content.js'
import { GATEWAY_LIMITS } from './gateway-limits.js'
import type { GatewayApp, GatewayOptions, GatewayStores } from './gateway-options.js'
import type { ContentHosts } from './hosts/content-hosts.js'
import { errorPage } from './hosts/error-page.js'
import { type CustomDomains, type HostHandler, hostContent } from './hosts/host-content.js'
import { type ErrorPage, errorResponse } from './http/error-response.js'
import { PendingOrigins } from './http/pending-origins.js'
import { RequestBodies } from './http/request-body.js'
import { crossOrigin, sandboxPolicy } from './http/security-headers.js'
import { ResponseCache } from './http/stored-response.js'
import { NOTHING_FOLLOWED, type TreeProgress } from './http/tree-progress.js'
import { listsRoutes } from './lists/lists.js'
import { metadataRoutes } from './metadata/metadata.js'
import { proofRoutes } from './metadata/proof.js'
import { provenanceRoutes } from './metadata/provenance.js'
import { namesRoutes } from './names/names.js'
import { previewRoutes } from './preview/preview.js'
import { streamRoutes } from './streams/stream.js'
import { beefRoutes } from './wallets/beef-routes.js'
import { capabilitiesRoutes } from './wallets/capabilities-routes.js'
import { overlayPaths } from './wallets/overlay-paths.js'
import { txoRoutes } from './wallets/txo-routes.js'

/** What only the server of this package sets, beside the options of every host. */
interface ServerOptions {
  /** The hosts that show content; if missing, none does. */
  hosts?: ContentHosts | undefined
  /** See `HostContentOptions`. */
  domains?: CustomDomains | undefined
  /** Whether pages below `/content/` are sent on to the origin of their outpoint, which `hosts` must have. */
  redirectPages?: boolean
  /** Reads request bodies; by default no compressed ones, and each up to its own limit. */
  bodies?: RequestBodies
  /** Caches responses, for a host that sends them without these routes. */
  responses?: ResponseCache
  /** Renders errors for people; by default, all get JSON. */
  errorPage?: ErrorPage | undefined
  /** How far the host has followed the tree of names; by default, it follows nothing. */
  progress?: TreeProgress
  /** Whether it has routes of its own for what wallets submit and look up below their prefixes. */
  hasOverlay?: boolean
  /** Whether it asks the network which transactions it has; by default, it does not. */
  asksNetwork?: boolean
}

/** What wallets ask for, below the profile's prefixes. */
const WALLETS = ['/beef', '/txo', '/capabilities']

/** What of the gateway is no route. */
interface AttachedGateway {
  /** Answers requests on hosts that show content. Undefined if there are none. */
  answerHosted: HostHandler | undefined
  /** Sends the errors of these requests. */
  hostErrors: ErrorRequestHandler
}

/**
 * Adds the routes that read the graph to an Express app: content, and below the profile's prefixes names, streams, metadata,
 * previews and provenance, and what wallets ask for by txid and outpoint. `spec/http.md` specifies them, for every host. Other paths are passed on, so call this before the
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
export function attachGateway(
  app: GatewayApp,
  { graph }: GatewayStores,
  options: GatewayOptions & ServerOptions = {},
): AttachedGateway {
  const { profile = PROFILES.mainnet, network = 'main', logger = pino({ name: 'minetree' }) } = options
  const { bodies = new RequestBodies(), progress = NOTHING_FOLLOWED } = options
  const { responses = new ResponseCache(graph, progress) } = options
  const { genesis = 'genesis' in options ? undefined : deploymentOf(profile)?.genesis } = options
  if (genesis !== undefined) checkedOutpoint(genesis)
  const limits = { ...GATEWAY_LIMITS, ...options.limits }
  const { maxPointers, maxOrigins, maxDirectoryBytes, maxMapBytes } = limits
  const maxPathBytes = Math.max(limits.maxDirectoryPathBytes, maxDirectoryBytes)
  const { directoryContentTypes, gatewayPrefixes: prefixes, streamChunkContentTypes: chunkTypes } = profile
  const all = new BlocklistFilter(graph)
  const pending = options.ancestors && new PendingOrigins(graph, options.ancestors)
  const store = pending?.over(all) ?? all
  const policy = sandboxPolicy(options.contentPolicy)
  const errors = errorResponse({ logger, page: options.errorPage, ...(pending && { pending }) })
  const wallets = (path: string): string[] => profile.walletPrefixes.map((prefix) => prefix + path)
  const origins = options.crossOrigin === false ? [] : [crossOrigin()]
  const routes = Router()
  for (const handler of origins) {
    app.options(CONTENT_PATH, handler)
    routes.use([...prefixes, ...profile.namesPrefixes, ...WALLETS.flatMap(wallets)], handler)
  }
  // Directly on the app: a router of its own takes time that `npm run bench gateway` shows.
  const { hosts } = options
  const answers = contentAnswers({ store, directoryContentTypes, maxDirectoryBytes, maxPathBytes })
  const originOf = hosts && ((request: Request, outpoint: Outpoint) => hosts.originOf(request, outpoint))
  const content = contentHandler({
    ...{ store, responses, answers, policy },
    ...(options.redirectPages && { originOf }),
  })
  app.get(CONTENT_PATH, ...origins, content, errors)
  routes
    .use(
      namesRoutes({
        // A name has a record, wherever it went.
        store: all,
        network,
        prefixes: profile.namesPrefixes,
        genesis,
        maxOrigins,
        maxMapBytes,
        bodies,
        responses,
        progress,
        asksNetwork: options.asksNetwork ?? false,
      }),
    )
    .use(listsRoutes({ store: all, network, prefixes, responses, progress }))
    .use(streamRoutes({ store, prefixes, chunkTypes, policy }))
    .use(metadataRoutes({ store, network, prefixes, maxPointers, maxMapBytes, bodies, responses }))
    .use(previewRoutes({ prefixes, policy, bodies }))
    .use(provenanceRoutes({ store, evidence: graph, prefixes }))
    .use(proofRoutes({ store, evidence: graph, prefixes, responses }))
    .use(beefRoutes({ graph, prefixes: wallets('/beef') }))
    .use(txoRoutes({ graph, prefixes: wallets('/txo'), maxPointers, maxOrigins, bodies, progress }))
    .use(capabilitiesRoutes(profile))
    .use(errors)
  app.use(routes)
  if (!options.hasOverlay) app.use(overlayPaths(wallets('/overlay')))
  const { contentPolicy, domains } = options
  return {
    answerHosted:
      hosts &&
      hostContent({
        ...{ hosts, store, responses, answers, content, profile, domains, progress },
        policy: contentPolicy,
      }),
    hostErrors: errorResponse({ logger, page: errorPage, ...(pending && { pending }) }),
  }
}
