import express, { type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { attachGateway } from '../gateway/attach-gateway.js'
import { errorResponse } from '../gateway/http/error-response.js'
import { NotFoundError } from '../gateway/http/errors.js'
import type { MissingAncestors } from '../gateway/http/pending-origins.js'
import { RequestBodies } from '../gateway/http/request-body.js'
import { ResponseCache } from '../gateway/http/stored-response.js'
import type { ReorgMonitor } from './chain/reorg-monitor.js'
import type { Config } from './config/config.js'
import { packageVersion } from './config/package-info.js'
import { requireAdmin } from './http/admin-guard.js'
import { clientKey, createGates } from './http/gates.js'
import { type App, aheadOfRoutes } from './http/hot-path.js'
import { Readiness } from './http/readiness.js'
import { Uploads } from './http/uploads.js'
import { openapiDocument } from './openapi/document.js'
import { arcIngestRoutes } from './routes/arc-ingest.js'
import { beefRoutes } from './routes/beef-routes.js'
import { blockingRoutes } from './routes/blocking-routes.js'
import { capabilitiesRoutes } from './routes/capabilities-routes.js'
import { deploymentRoutes } from './routes/deployment-routes.js'
import { headersRoutes } from './routes/headers-routes.js'
import { healthRoutes } from './routes/health-routes.js'
import { metricsRoutes } from './routes/metrics-routes.js'
import { type MinePage, minePageRoutes } from './routes/mine-page-routes.js'
import { openapiRoutes } from './routes/openapi-routes.js'
import { overlayRoutes } from './routes/overlay-routes.js'
import { txoRoutes } from './routes/txo-routes.js'
import { type IndexStatus, notReadyReason } from './store/index-maintenance.js'
import type { Overlay } from './submission/overlay.js'
import { queueSubmissions, type Submit } from './submission/submission-queue.js'
import type { ChainParts } from './telemetry/chain-status.js'
import { Metrics } from './telemetry/metrics.js'

export interface AppOptions {
  config: Config
  overlay: Overlay
  /** By default, the engine handles submissions in this thread. */
  submit?: Submit
  graph: GraphStore
  /** If missing, proofs are not verified again. */
  reorgMonitor?: ReorgMonitor
  /** If missing, `/mine` is not found. */
  minePage?: MinePage
  ping: () => Promise<void>
  /** Served at `/metrics`; by default, nothing is counted. */
  metrics?: Metrics
  /** Reasons why the host is not ready; the index and the chain tracker are added. */
  readiness?: Readiness
  /** See `GatewayOptions`. */
  ancestors?: MissingAncestors
  /** Whether the index matches the admitted set; by default, it does. */
  index?: () => IndexStatus
  /** The parts that know the chain and follow it, for `/health`. */
  chain?: ChainParts
  logger: Logger
}

/** All routes of the server, behind its gates and the responses that are cached. */
export function createApp(options: AppOptions): App {
  const { config, graph, ping, logger } = options
  const { engine, discovery, proofs, refused } = options.overlay
  const { limits } = config
  const { metrics = new Metrics() } = options
  const submit = metrics.counted(queueSubmissions(options.submit ?? engine.submit, limits))
  const { index = () => ({ state: 'equal', done: 1 }), readiness = new Readiness() } = options
  readiness.add('index', () => notReadyReason(index()))
  readiness.add('tracker', () => proofs.headers?.outage)
  const gates = createGates({ limits, index })
  const uploads = new Uploads({ ...limits, clientOf: clientKey })
  const bodies = new RequestBodies({
    inflate: config.acceptCompressedBodies,
    beginUpload: (request) => uploads.begin(request),
  })
  const { profile, network, maxBodyBytes, deployment } = config
  const below = (path: string): string[] => profile.walletPrefixes.map((prefix) => prefix + path)
  const overlay = overlayRoutes({
    ...limits,
    engine,
    discovery,
    graph,
    profile,
    maxBodyBytes,
    bodies,
    submit,
  })
  const admin = express
    .Router()
    .use(
      gates.operator,
      requireAdmin(config.adminToken),
      gates.index,
      blockingRoutes({ graph, logger, bodies }),
      headersRoutes(options.reorgMonitor, { engine, bodies }),
      refuseUnknown,
      errorResponse({ logger, overlay: true }),
    )
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', 'simple')
    .set('trust proxy', limits.trustedProxies)
  const responses = new ResponseCache(graph)
  attachGateway(
    app,
    { graph },
    {
      profile,
      network,
      genesis: deployment?.genesis,
      contentPolicy: config.contentSecurityPolicy,
      limits,
      crossOrigin: false,
      logger,
      bodies,
      responses,
      ...(options.ancestors && { ancestors: options.ancestors }),
    },
  )
  const errors = errorResponse({ logger })
  app
    .use('/admin', admin)
    .use(beefRoutes({ graph, prefixes: below('/beef') }))
    .use(txoRoutes({ graph, prefixes: below('/txo') }))
    .use(capabilitiesRoutes(profile))
    .use(deploymentRoutes(config, graph))
    .use(minePageRoutes(options.minePage))
    .use(healthRoutes({ ping, readiness, index, refused, chain: options.chain }))
    .use(metricsRoutes(metrics))
    .use(openapiRoutes(() => openapiDocument({ profile, version: packageVersion() })))
    .use(errors)
    .use(
      gates.overlay,
      express.Router().use(below('/overlay'), overlay).use(overlay),
      arcIngestRoutes({ engine, graph, proofs, token: config.arcCallbackToken, bodies }),
      errorResponse({ logger, overlay: true }),
    )
    .use(refuseUnknown)
    .use(errors)
  return aheadOfRoutes(app, { handlers: [gates.gateway, responses.handler], errors })
}

const refuseUnknown: RequestHandler = () => {
  throw new NotFoundError('there is no route for this path and method')
}
