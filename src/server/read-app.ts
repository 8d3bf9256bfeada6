import express, { type Express, type Request, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { attachGateway } from '../gateway/attach-gateway.js'
import { ContentHosts, type HostedRequest } from '../gateway/hosts/content-hosts.js'
import type { MissingAncestors } from '../gateway/http/pending-origins.js'
import { RequestBodies } from '../gateway/http/request-body.js'
import { ResponseCache } from '../gateway/http/stored-response.js'
import type { Config } from './config/config.js'
import { DnsDomains, dnsResolver } from './hosts/custom-domains.js'
import { clientKey } from './http/gates.js'
import type { HostedApp } from './http/hot-path.js'
import { Uploads } from './http/uploads.js'
import { beefRoutes } from './routes/beef-routes.js'
import { capabilitiesRoutes } from './routes/capabilities-routes.js'
import { txoRoutes } from './routes/txo-routes.js'

export interface ReadAppOptions {
  config: Config
  graph: GraphStore
  /** See `GatewayOptions`. */
  ancestors?: MissingAncestors
  logger: Logger
}

/** The routes that need nothing but the store, which any process may read. They leave errors and all other paths to the caller. */
export function readApp({ config, graph, ancestors, logger }: ReadAppOptions): {
  app: Express
  /** Reads the bodies of requests, for further routes as well. */
  bodies: RequestBodies
  /** Sends a stored response, ahead of the routes. */
  answerStored: RequestHandler
  /** The hosts that show content, but for their gate; undefined if there are none. */
  hosted: Omit<HostedApp, 'gate'> | undefined
} {
  const { profile, network, limits, deployment, contentSecurityPolicy } = config
  const { gatewayHost, serviceHosts, customDomains, dnsServers } = config
  const below = (path: string): string[] => profile.walletPrefixes.map((prefix) => prefix + path)
  const uploads = new Uploads({ ...limits, clientOf: clientKey })
  const bodies = new RequestBodies({
    inflate: config.acceptCompressedBodies,
    beginUpload: (request) => uploads.begin(request),
  })
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', 'simple')
    .set('trust proxy', limits.trustedProxies)
  const responses = new ResponseCache(graph)
  const contentHosts = new ContentHosts({
    ...{ gatewayHost, serviceHosts, customDomains },
    publicUrl: config.hostingUrl,
    trustedProxies: limits.trustedProxies,
  })
  const { lookupRate, maxLookups } = limits
  const domains = customDomains
    ? new DnsDomains({ resolver: dnsResolver(dnsServers), lookupRate, maxLookups })
    : undefined
  const hosts = contentHosts.isNeeded ? contentHosts : undefined
  const { answerHosted: answer, hostErrors: errors } = attachGateway(
    app,
    { graph },
    {
      ...{ profile, network, limits, logger, bodies, responses },
      genesis: deployment?.genesis,
      contentPolicy: contentSecurityPolicy,
      crossOrigin: false,
      ...{ hosts, domains, redirectPages: config.contentRedirect },
      ...(ancestors && { ancestors }),
    },
  )
  app
    .use(beefRoutes({ graph, prefixes: below('/beef') }))
    .use(txoRoutes({ graph, prefixes: below('/txo') }))
    .use(capabilitiesRoutes(profile))
  const read = (request: Request): HostedRequest | undefined => contentHosts.read(request)
  const hosted = answer && { read, answer, errors }
  return { app, bodies, answerStored: responses.handler, hosted }
}
