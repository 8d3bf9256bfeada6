import express, { type Express, type Request, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import { BlocklistFilter } from '../../backend/src/graph/blocklist-filter.js'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import type { ChainView } from '../explorer/index.js'
import { attachGateway } from '../gateway/attach-gateway.js'
import { ContentHosts } from '../gateway/hosts/content-hosts.js'
import type { ErrorPage } from '../gateway/http/error-response.js'
import type { MissingAncestors } from '../gateway/http/pending-origins.js'
import { RequestBodies } from '../gateway/http/request-body.js'
import { ResponseCache } from '../gateway/http/stored-response.js'
import type { TreeProgress } from '../gateway/http/tree-progress.js'
import { ownerAddress } from '../gateway/names/name-record.js'
import type { Config } from './config/config.js'
import { DnsDomains, dnsResolver } from './hosts/custom-domains.js'
import { clientKey } from './http/gates.js'
import type { HostedApp } from './http/hot-path.js'
import { Transfers } from './http/transfers.js'
import { explorerRoutes } from './routes/explorer-routes.js'
import type { PageHosts } from './routes/page-headers.js'
import { errorPages, pageRenderer, type RenderPage, siteOf } from './routes/send-page.js'

export interface ReadAppOptions {
  config: Config
  graph: GraphStore
  /** See `GatewayOptions`. */
  ancestors?: MissingAncestors
  /** The port that it listens on, once it does; by default, the one in the settings. */
  port?: (() => number | undefined) | undefined
  /** How far the host has come, for its pages. */
  chain: () => Promise<ChainView> | ChainView
  /** How far the host has followed the tree of names. */
  progress: TreeProgress
  logger: Logger
}

/** The routes that need nothing but the store, which any process may read. They leave errors and all other paths to the caller. */
export function readApp({ config, graph, ancestors, port, chain, progress, logger }: ReadAppOptions): {
  app: Express
  /** Reads the bodies of requests, for further routes as well. */
  bodies: RequestBodies
  transfers: Transfers
  /** Sends a stored response, ahead of the routes. */
  answerStored: RequestHandler
  /** The hosts that show content, but for their gate; undefined if there are none. */
  hosted: Omit<HostedApp, 'gate'> | undefined
  /** Renders the pages of the host. */
  render: RenderPage
  /** Sends errors, to people as pages. */
  errorPage: ErrorPage
  /** By which hosts a browser may know the service. */
  hostsOf: PageHosts
} {
  const { profile, network, limits, deployment, contentSecurityPolicy } = config
  const { gatewayHost, serviceHosts, customDomains, dnsServers } = config
  const transfers = new Transfers({ ...limits, clientOf: clientKey })
  const bodies = new RequestBodies({
    inflate: config.acceptCompressedBodies,
    uploads: transfers,
  })
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', 'simple')
    .set('trust proxy', limits.trustedProxies)
  const responses = new ResponseCache(graph, progress)
  const site = siteOf(config, { progress, port })
  const render = pageRenderer(site, progress)
  const contentHosts = new ContentHosts({
    ...{ gatewayHost, serviceHosts, customDomains },
    publicUrl: config.hostingUrl,
    trustedProxies: limits.trustedProxies,
  })
  const hostsOf = (request: Request): string[] => contentHosts.hostsOf(request)
  const errorPage = errorPages(render, hostsOf)
  const { lookupRate, maxLookups } = limits
  const domains = customDomains
    ? new DnsDomains({ resolver: dnsResolver(dnsServers), lookupRate, maxLookups })
    : undefined
  const hosts = contentHosts.isNeeded ? contentHosts : undefined
  const { answerHosted: answer, hostErrors: errors } = attachGateway(
    app,
    { graph },
    {
      ...{ profile, network, limits, logger, bodies, responses, errorPage, progress },
      genesis: deployment?.genesis,
      contentPolicy: contentSecurityPolicy,
      crossOrigin: false,
      hasOverlay: true,
      asksNetwork: config.chainSources.length > 0,
      ...{ hosts, domains, redirectPages: config.contentRedirect },
      ...(ancestors && { ancestors }),
    },
  )
  app.use(
    explorerRoutes({
      explorer: {
        ...{ store: new BlocklistFilter(graph), site, difficulty: deployment?.difficulty },
        addressOf: (owner) => ownerAddress(owner, network),
      },
      ...{ responses, chain, progress },
      publicUrl: config.hostingUrl?.replace(/\/+$/, '') ?? '',
      hostsOf,
    }),
  )
  const hosted = answer && { hosts: contentHosts, answer, errors }
  return { app, bodies, transfers, answerStored: responses.handler, hosted, render, errorPage, hostsOf }
}
