import type { ErrorRequestHandler, Request, RequestHandler } from 'express'
import { pino } from 'pino'
import { longestName } from '../../backend/src/protocol/mint.js'
import { checkedOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../backend/src/protocol/profile.js'
import { CONTENT_OPERATIONS, ContentAnswers, type ContentParts, contentHandler } from './content/content.js'
import type { GatewayOptions, GatewayStores } from './gateway-options.js'
import { GATEWAY_LIMITS } from './gateway-options.js'
import { ContentHosts, type ContentHostsOptions } from './hosts/content-hosts.js'
import { errorPage as siteErrorPage } from './hosts/error-page.js'
import { type CustomDomains, type HostHandler, hostContent } from './hosts/host-content.js'
import { type ErrorPage, errorResponse } from './http/error-response.js'
import { whenOpened } from './http/long-read.js'
import { below, mounted, type RouteGroup } from './http/operation.js'
import { PendingOrigins } from './http/pending-origins.js'
import { RequestBodies } from './http/request-body.js'
import { sandboxPolicy } from './http/security-headers.js'
import { ResponseCache } from './http/stored-response.js'
import { NOTHING_FOLLOWED } from './http/tree-progress.js'
import { type ImageMaker, imageRoutes } from './images/images.js'
import { listsRoutes } from './lists/lists.js'
import { lookupRoutes } from './lookups/lookup-routes.js'
import { metadataRoutes } from './metadata/metadata.js'
import { proofRoutes } from './metadata/proof.js'
import { provenanceRoutes } from './metadata/provenance.js'
import { type AboutServer, deploymentRoutes } from './names/deployment-routes.js'
import { ownerAddress } from './names/name-record.js'
import { namesRoutes } from './names/names.js'
import { explorerFileRoutes, explorerRoutes } from './pages/explorer-routes.js'
import { minePageRoutes } from './pages/mine-page-routes.js'
import type { PageFiles } from './pages/page-files.js'
import type { PageHosts } from './pages/send-page.js'
import { errorPages, pageRenderer, type RenderPage, siteOf } from './pages/send-page.js'
import { previewRoutes } from './preview/preview.js'
import { RECURSION_PREFIX, recursionRoutes } from './recursion/recursion.js'
import { streamRoutes } from './streams/stream.js'
import { beefRoutes } from './wallets/beef-routes.js'
import { txoRoutes } from './wallets/txo-routes.js'

/** Options that only the server of this package sets. */
export interface ServerOptions extends Partial<Pick<ContentHostsOptions, 'others'>> {
  /** See `HostContentOptions`. */
  domains?: CustomDomains | undefined
  /** Reads request bodies; by default, uncompressed ones only, each up to its own limit. */
  bodies?: RequestBodies
  /** The port the server listens on, once it does. */
  port?: () => number | undefined
  hasStatus?: boolean
  /** If missing, images are only served as inscribed. */
  images?: ImageMaker | undefined
  /** The setting `CONTENT_TYPES`. */
  contentTypes?: string[] | undefined
  advertisedAs?: AboutServer['advertisedAs']
  /** The scripts and the style sheet of pages; if missing, pages have none, and `/mine` is not found. */
  pageFiles?: PageFiles | undefined
}

/** Everything that only reads the graph; the same in our server and in hosts of other engines. */
export interface Gateway {
  /** The routes. The group of content is first, and is mounted separately. */
  groups: RouteGroup[]
  /** Answers `CONTENT_PATH`. */
  content: RequestHandler
  /** Handlers before each of these: in a host of another engine, the store is opened on first use. */
  opened: RequestHandler[]
  errors: ErrorRequestHandler
  sites: { hosts: ContentHosts; answer: HostHandler; errors: ErrorRequestHandler }
  bodies: RequestBodies
  responses: ResponseCache
  render: RenderPage
  /** Sends errors as pages to people; undefined without the explorer. */
  errorPage: ErrorPage | undefined
  hostsOf: PageHosts
}

/**
 * Makes the gateway of a host. **Add a route that only reads to the list here**: then every host has it, with its description.
 *
 * @throws PointerError if the genesis is not an outpoint.
 */
export function openGateway(
  { graph, lookupServices }: GatewayStores,
  options: GatewayOptions & ServerOptions = {},
): Gateway {
  const { profile = PROFILES.mainnet, network = 'main', logger = pino({ name: 'minetree' }) } = options
  const { path = '', publicUrl, gatewayHost, ownHosts = [], trustedProxies = 0 } = options
  const { follower = { progress: NOTHING_FOLLOWED, asksNetwork: false }, bodies = new RequestBodies() } =
    options
  const { progress, ancestors } = follower
  const { deployment = 'deployment' in options ? undefined : deploymentOf(profile) } = options
  const genesis = deployment && checkedOutpoint(deployment.genesis)
  const tree = deployment && { difficulty: deployment.difficulty, longestName: longestName(deployment) }
  const limits = { ...GATEWAY_LIMITS, ...options.limits }
  const { gatewayPrefixes: prefixes, namesPrefixes, walletPrefixes } = profile
  const pending = ancestors && new PendingOrigins(graph, ancestors)
  const store =
    pending === undefined ? graph.served : graph.served.checkingTips((tip) => pending.checkTip(tip))
  const responses = new ResponseCache(graph, progress)
  const policy = sandboxPolicy(options.contentPolicy)
  const wallets = (below: string): string[] => walletPrefixes.map((prefix) => prefix + below)

  const hosts = new ContentHosts({
    ...{ gatewayHost, ownHosts, publicUrl, trustedProxies, path },
    others: options.others ?? 'service',
  })
  const hostsOf = (request: Request): string[] => hosts.hostsOf(request).map((host) => host + path)
  const parts: ContentParts = {
    ...{ graph, store, responses, bodies, policy, progress, asksNetwork: follower.asksNetwork },
    ...{ profile, network, deployment, genesis, tree, path, ...limits },
    answers: new ContentAnswers({ store, profile, ...limits }),
  }
  // Also where an ordinal went somewhere unknown.
  const all = { ...parts, store: graph.served }
  const site = siteOf(parts, options)
  const render = pageRenderer(site, progress)
  const errorPage = options.explorer ? errorPages(render, hostsOf) : undefined
  const originOf = (request: Request, outpoint: Outpoint) => hosts.originOf(request, outpoint)
  const content = contentHandler(parts, options.redirectPages ? originOf : undefined)
  const recursion = below([RECURSION_PREFIX], recursionRoutes(all))
  const groups: RouteGroup[] = [
    { needs: 'reads', prefixes: [''], operations: [CONTENT_OPERATIONS] },
    recursion,
    below(namesPrefixes, namesRoutes(all)),
    below(
      prefixes,
      streamRoutes(parts),
      prefixes.includes(`${walletPrefixes[0]}/ordfs`) ? { capability: 'ordfs' } : {},
    ),
    below(prefixes, metadataRoutes(parts)),
    below(prefixes, previewRoutes(parts)),
    below(prefixes, provenanceRoutes(parts)),
    below(prefixes, proofRoutes(parts)),
    // Last of these prefixes, as they have the most routes: Express tries one after another.
    below(prefixes, listsRoutes(all)),
    below(wallets('/beef'), beefRoutes(graph), { capability: 'beef' }),
    below(wallets('/txo'), txoRoutes(parts), { capability: 'txo' }),
    below([''], deploymentRoutes(parts, { ...options, sitesOf: (request) => hosts.sitesOf(request) })),
  ]
  const { images } = options
  if (images !== undefined) groups.push(below(prefixes, imageRoutes(images, parts), { capability: 'image' }))
  if (options.explorer) {
    const { pageFiles: files } = options
    const explorer = explorerRoutes(all, {
      explorer: { ...{ store: all.store, site, tree }, addressOf: (owner) => ownerAddress(owner, network) },
      hostsOf,
      chain: () => follower.chain?.() ?? {},
      publicUrl: (publicUrl?.replace(/\/+$/, '') ?? '') + path,
    })
    groups.push(
      { needs: 'reads', prefixes: [''], operations: [], handler: explorer },
      { needs: 'reads', prefixes: [''], operations: [], handler: explorerFileRoutes(files, hostsOf) },
      below([''], minePageRoutes(files, { render, hostsOf })),
    )
  }
  if (lookupServices !== undefined && options.overlay !== false) {
    const lookups = lookupRoutes({
      ...parts,
      services: lookupServices(parts),
      aliases: profile.lookupServiceAliases,
      leavesOthers: true,
    })
    const handler = lookups.handler.use(errorResponse({ logger, overlay: true, page: errorPage }))
    groups.push(
      // Requests that wallets send to other paths are passed to the root (`overlayPaths`).
      { needs: 'reads', prefixes: [''], operations: [], handler },
      {
        ...{ needs: 'reads', capability: 'overlay', operations: lookups.operations },
        prefixes: ['', ...wallets('/overlay')],
      },
    )
  }
  const { contentPolicy, domains } = options
  return {
    ...{ groups, content, bodies, responses, render, errorPage, hostsOf },
    opened: whenOpened(graph),
    errors: errorResponse({ logger, page: errorPage, ...(pending && { pending }) }),
    sites: {
      hosts,
      answer: hostContent(parts, {
        ...{ hosts, content, domains },
        recursion: mounted([recursion]),
        policy: contentPolicy,
        hasPages: errorPage !== undefined,
      }),
      errors: errorResponse({ logger, page: siteErrorPage, ...(pending && { pending }) }),
    },
  }
}
