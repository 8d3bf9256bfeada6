import express, { type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Proof } from '../../backend/src/graph/records.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { Sightings } from '../chain/follow/sightings.js'
import type { ReorgMonitor } from '../chain/tracker/reorg-monitor.js'
import { mountGateway } from '../gateway/attach-gateway.js'
import { openGateway } from '../gateway/gateway.js'
import { allowedMethods, refusingOthers } from '../gateway/http/allowed-methods.js'
import type { TreeProgress } from '../gateway/http/as-of.js'
import { errorResponse } from '../gateway/http/error-response.js'
import { AnswerError } from '../gateway/http/errors.js'
import { below, type RouteGroup } from '../gateway/http/operation.js'
import type { MissingAncestors } from '../gateway/http/pending-origins.js'
import { RequestBodies } from '../gateway/http/request-body.js'
import { NOTHING_FOLLOWED } from '../gateway/http/tree-progress.js'
import type { ImageMaker } from '../gateway/images/images.js'
import { aboutRoutes } from '../gateway/openapi/about-routes.js'
import type { PageFiles } from '../gateway/pages/page-files.js'
import type { Config } from './config/config.js'
import { advertisedHost } from './discovery/advertisement.js'
import { DnsDomains, dnsResolver } from './hosts/custom-domains.js'
import { requireAdmin } from './http/admin-guard.js'
import { clientKey, createGates, errorsByPath } from './http/gates.js'
import { type App, aheadOfRoutes, METHODS, readsAhead } from './http/hot-path.js'
import { Transfers } from './http/transfers.js'
import { arcIngestRoutes } from './routes/arc-ingest.js'
import { blockingRoutes } from './routes/blocking-routes.js'
import { headersRoutes } from './routes/headers-routes.js'
import { healthOf, healthRoutes, type Readiness } from './routes/health-routes.js'
import { metricsRoutes } from './routes/metrics-routes.js'
import { overlayRoutes } from './routes/overlay-routes.js'
import { statusRoutes } from './routes/status-routes.js'
import { type IndexStatus, notReadyReason } from './store/index-status.js'
import { type ChainParts, chainStatus } from './telemetry/chain-status.js'
import { Metrics } from './telemetry/metrics.js'
import type { Overlay } from './writer/overlay.js'
import { recordSightings, withSightings } from './writer/sighted-submissions.js'
import { queueSubmissions, type Submit } from './writer/submission-queue.js'

export interface AppOptions {
  config: Config
  overlay: Overlay
  /** By default, the engine handles submissions in this thread. */
  submit?: Submit
  graph: FactStore
  /** Asks the network about unproven transactions; if missing, the network is not asked. */
  sightings?: Sightings
  /** If missing, proofs are not verified again. */
  reorgMonitor?: ReorgMonitor
  /** See `ServerOptions`. */
  images?: ImageMaker | undefined
  /** The scripts and the style sheet of pages; if missing, pages have none, and `/mine` is not found. */
  pageFiles?: PageFiles
  ping: () => Promise<void>
  /** Served at `/metrics`; by default, nothing is counted. */
  metrics?: Metrics
  /** The port the server listens on, once it does; by default, the one in the settings. */
  port?: (() => number | undefined) | undefined
  /** Reasons why the host is not ready; the index and the chain tracker are added. */
  readiness?: Readiness
  /** See `GatewayOptions`. */
  ancestors?: MissingAncestors
  /** Whether the index matches the admitted set; by default, it does. */
  index?: () => IndexStatus
  /** See `GatesOptions`. */
  position?: (() => number) | undefined
  chain?: ChainParts
  /** See `ArcIngestOptions`. */
  passOn?: ((txid: string, proof: Proof) => Promise<void>) | undefined
  progress?: TreeProgress
  logger: Logger
}

/** All routes of the server, behind its gates and the cached responses. */
export function createApp(options: AppOptions): App {
  const { config, graph, ping, logger } = options
  const { engine, discovery, proofs, refused } = options.overlay
  const { profile, network, deployment, maxBodyBytes, maxContentBytes } = config
  const limits = { ...config.limits, maxContentBytes }
  const { metrics = new Metrics() } = options
  const queue = queueSubmissions(options.submit ?? engine.submit, limits)
  const submit = metrics.counted(options.sightings ? withSightings(queue, options.sightings) : queue)
  const { index = () => ({ state: 'equal', done: 1 }) } = options
  const { progress = NOTHING_FOLLOWED } = options
  const gates = createGates({ limits, index, position: options.position })
  const { serviceHosts, customDomains, dnsServers, gatewayHost, hostingUrl: publicUrl } = config
  const { trustedProxies, lookupRate } = limits
  const transfers = new Transfers({ ...limits, clientOf: clientKey })
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', 'simple')
    .set('trust proxy', trustedProxies)
  const host = advertisedHost(config)
  const gateway = openGateway(
    { graph },
    {
      ...{ profile, network, deployment, limits, gatewayHost, publicUrl, trustedProxies, logger },
      contentPolicy: config.contentSecurityPolicy,
      redirectPages: config.contentRedirect,
      explorer: true,
      follower: {
        ...{ progress, asksNetwork: config.chainSources.length > 0 },
        ...(options.ancestors && { ancestors: options.ancestors }),
        chain: () => chainStatus(options.chain ?? {}),
      },
      ownHosts: serviceHosts,
      others: customDomains ? 'domains' : serviceHosts.length > 0 ? 'nothing' : 'service',
      ...(customDomains && {
        domains: new DnsDomains({ resolver: dnsResolver(dnsServers), lookupRate }),
      }),
      bodies: new RequestBodies({ inflate: config.acceptCompressedBodies, uploads: transfers }),
      port: () => options.port?.() ?? (config.port || undefined),
      hasStatus: true,
      contentTypes: config.contentTypes,
      advertisedAs: host && { identityKey: host.key.toPublicKey().toString(), url: host.url },
      pageFiles: options.pageFiles,
      images: options.images,
    },
  )
  const { bodies, responses, render, errorPage: page, hostsOf, sites } = gateway
  const health = healthOf({
    ...{ config, engine, ping, index, refused, chain: options.chain },
    port: () => options.port?.() ?? config.port,
    readiness: {
      ...options.readiness,
      index: () => notReadyReason(index()),
      tracker: () => proofs.headers?.outage,
    },
  })
  const arc = arcIngestRoutes({
    ...{ engine, graph, proofs, bodies },
    record: (sightings) => recordSightings({ graph, overlay: options.overlay }, sightings),
    maxTrackerBlocks: limits.maxTrackerBlocks,
    token: config.arcCallbackToken,
    passOn: options.passOn,
  })
  const errors = errorsByPath(errorResponse({ logger, overlay: true, page }), gateway.errors)
  const refuseMethod = refusingOthers(({ baseUrl, path }) =>
    allowedMethods([app.router as never], baseUrl + path),
  )
  const refuse: RequestHandler = (request, response, next) =>
    refuseMethod(
      request,
      response,
      (error = new AnswerError('NOT_FOUND', 'there is no route for this path')) => next(error),
    )
  /** No route has other methods, and Express would answer OPTIONS itself. */
  const refuseOther: RequestHandler = (request, response, next) => {
    if (METHODS.has(request.method)) next()
    else refuse(request, response, next)
  }
  const guards = express
    .Router()
    .use(gates.operator, requireAdmin(config.adminToken), refuseOther, gates.index)
  const overlayPrefixes = ['', ...profile.walletPrefixes.map((prefix) => `${prefix}/overlay`)]
  const overlay = overlayRoutes({
    ...limits,
    ...{ engine, discovery, graph, profile, maxBodyBytes, bodies, submit, progress },
  })
  const own: RouteGroup[] = [
    { needs: 'operator', prefixes: ['/admin'], operations: [], handler: guards },
    below(['/admin'], blockingRoutes({ graph, logger, bodies }), { needs: 'operator' }),
    below(['/admin'], headersRoutes(options.reorgMonitor, { engine, bodies }), { needs: 'operator' }),
    below([''], healthRoutes(health), { needs: 'process' }),
    below([''], metricsRoutes(metrics), { needs: 'process' }),
    { needs: 'process', prefixes: [''], operations: [], handler: statusRoutes({ health, render, hostsOf }) },
    ...overlay.map((each) => below(overlayPrefixes, each, { needs: 'writer', capability: 'overlay' })),
    below([''], arc, { needs: 'writer' }),
  ]
  const groups = [...gateway.groups, ...own]
  const about = aboutRoutes({
    ...{ groups, path: '', isServer: true, hasCors: true },
    walletPrefixes: profile.walletPrefixes,
    pages: gateway,
  })
  mountGateway(app, { gateway: { ...gateway, errors }, groups: [...gateway.groups, ...about, ...own] })
  app.use(refuse).use(errors)
  return aheadOfRoutes(app, {
    ...{
      handlers: [gates.service, readsAhead({ stored: responses.handler, content: gateway.content, refuse })],
      errors,
      transfers,
    },
    hosted: { ...sites, gate: gates.hosted },
  })
}
