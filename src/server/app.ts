import express, { type Express, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { attachGateway } from '../gateway/attach-gateway.js'
import { crossOrigin } from '../gateway/cross-origin.js'
import { errorResponse, NotFoundError } from '../gateway/error-response.js'
import { RequestBodies } from '../gateway/request-body.js'
import { requireAdmin } from './admin-guard.js'
import { arcIngestRoutes } from './arc-ingest.js'
import { blockingRoutes } from './blocking-routes.js'
import type { Config } from './config.js'
import { deploymentRoutes } from './deployment-routes.js'
import { headersRoutes } from './headers-routes.js'
import { healthRoutes } from './health-routes.js'
import { boundedSubmit } from './limits/bounded-submit.js'
import { clientKey, rateLimits } from './limits/rate-limits.js'
import { Uploads } from './limits/uploads.js'
import { Metrics } from './metrics.js'
import { metricsRoutes } from './metrics-routes.js'
import { type MinePage, minePageRoutes } from './mine-page-routes.js'
import { openapiRoutes } from './openapi-routes.js'
import type { Overlay } from './overlay.js'
import { overlayRoutes } from './overlay-routes.js'
import { packageVersion } from './package-version.js'
import type { ProofWatch } from './proof-watch.js'
import { isOverlayPath, notReadyReason, Readiness, refuseWhileRebuilding } from './readiness.js'
import { type Submit, submitTo } from './submit.js'
import type { IndexStatus } from './upkeep.js'

export interface AppOptions {
  config: Config
  overlay: Overlay
  /** By default, the engine takes submissions in this thread. */
  submit?: Submit
  graph: GraphStore
  /** Without one, proofs are not checked. */
  watch?: ProofWatch
  /** Without one, there is none at `/mine`. */
  minePage?: MinePage
  ping: () => Promise<void>
  /** What `/metrics` tells; by default, nothing is counted. */
  metrics?: Metrics
  /** Why the host is not ready; by default, nothing but the index is a reason. */
  readiness?: Readiness
  /** Whether the index is known to be all that was admitted; by default, it is. */
  index?: () => IndexStatus
  logger: Logger
}

/** All routes of the server. */
export function createApp(options: AppOptions): Express {
  const { config, overlay, graph, ping, logger } = options
  const { engine } = overlay
  const { limits } = config
  const { metrics = new Metrics() } = options
  const submit = metrics.counted(boundedSubmit(options.submit ?? submitTo(engine), limits))
  const { index = () => ({ state: 'equal', done: 1 }), readiness = new Readiness() } = options
  readiness.add('index', () => notReadyReason(index()))
  readiness.add('tracker', () => overlay.proofs.headers?.outage)
  const rates = rateLimits(limits)
  const uploads = new Uploads({ ...limits, clientOf: clientKey })
  const bodies = new RequestBodies({
    inflate: config.acceptCompressedBodies,
    beginUpload: (request) => uploads.begin(request),
  })
  const { profile, network, maxBodyBytes, deployment } = config
  // A router of its own: the app looks at each of its routes for every request.
  const admin = express
    .Router()
    .use(
      rates.operator,
      requireAdmin(config.adminToken),
      refuseWhileRebuilding(index),
      blockingRoutes({ graph, logger, bodies }),
      headersRoutes(options.watch, { engine, bodies }),
      refuseUnknown,
      errorResponse({ logger, overlay: true }),
    )
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', 'simple')
    .set('trust proxy', limits.trustedProxies)
    .use('/admin', admin)
    .use(crossOrigin())
    .use(rates.gateway)
    .use(refuseWhileRebuilding(index, (path) => !isOverlayPath(path)))
  attachGateway(
    app,
    { graph },
    {
      profile,
      network,
      genesis: deployment?.genesis,
      contentPolicy: config.contentPolicy,
      limits,
      crossOrigin: false,
      logger,
      bodies,
    },
  )
  return app
    .use(deploymentRoutes(config, graph))
    .use(minePageRoutes(options.minePage))
    .use(healthRoutes({ ping, readiness, index, refused: overlay.refused }))
    .use(metricsRoutes(metrics))
    .use(openapiRoutes({ profile, version: packageVersion() }))
    .use(errorResponse({ logger }))
    .use(
      rates.overlay,
      refuseWhileRebuilding(index, isOverlayPath),
      overlayRoutes({ ...limits, engine, graph, profile, maxBodyBytes, bodies, submit }),
      arcIngestRoutes({ engine, graph, proofs: overlay.proofs, token: config.arcCallbackToken, bodies }),
      errorResponse({ logger, overlay: true }),
    )
    .use(refuseUnknown)
    .use(errorResponse({ logger }))
}

const refuseUnknown: RequestHandler = () => {
  throw new NotFoundError('there is no route for this path and method')
}
