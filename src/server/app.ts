import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import type { Proof } from '../../backend/src/graph/records.js'
import type { Sightings } from '../follow/sightings.js'
import { errorResponse } from '../gateway/http/error-response.js'
import type { MissingAncestors } from '../gateway/http/pending-origins.js'
import { NOTHING_FOLLOWED, type TreeProgress } from '../gateway/http/tree-progress.js'
import type { ReorgMonitor } from './chain/reorg-monitor.js'
import type { Config } from './config/config.js'
import { packageVersion } from './config/package-info.js'
import { requireAdmin } from './http/admin-guard.js'
import { refusalOf } from './http/allowed-methods.js'
import { createGates, isAdmin, isOverlayPath } from './http/gates.js'
import { type App, aheadOfRoutes } from './http/hot-path.js'
import { Readiness } from './http/readiness.js'
import { openapiDocument } from './openapi/document.js'
import { readApp } from './read-app.js'
import { arcIngestRoutes } from './routes/arc-ingest.js'
import { blockingRoutes } from './routes/blocking-routes.js'
import { deploymentRoutes } from './routes/deployment-routes.js'
import { explorerFileRoutes } from './routes/explorer-routes.js'
import { headersRoutes } from './routes/headers-routes.js'
import { healthOf, healthRoutes } from './routes/health-routes.js'
import { metricsRoutes } from './routes/metrics-routes.js'
import { minePageRoutes } from './routes/mine-page-routes.js'
import { openapiRoutes } from './routes/openapi-routes.js'
import { overlayRoutes } from './routes/overlay-routes.js'
import type { PageFiles } from './routes/page-files.js'
import { statusRoutes } from './routes/status-routes.js'
import { type IndexStatus, notReadyReason } from './store/index-status.js'
import type { Overlay } from './submission/overlay.js'
import { recordSightings, withSightings } from './submission/sighted-submissions.js'
import { queueSubmissions, type Submit } from './submission/submission-queue.js'
import { type ChainParts, chainStatus } from './telemetry/chain-status.js'
import { Metrics } from './telemetry/metrics.js'

export interface AppOptions {
  config: Config
  overlay: Overlay
  /** By default, the engine handles submissions in this thread. */
  submit?: Submit
  graph: GraphStore
  /** Asks the network about unproven transactions; if missing, nobody does. */
  sightings?: Sightings
  /** If missing, proofs are not verified again. */
  reorgMonitor?: ReorgMonitor
  /** The scripts and the style sheet of pages; if missing, pages have none, and `/mine` is not found. */
  pageFiles?: PageFiles
  ping: () => Promise<void>
  /** Served at `/metrics`; by default, nothing is counted. */
  metrics?: Metrics
  /** The port that it listens on, once it does; by default, the one in the settings. */
  port?: (() => number | undefined) | undefined
  /** Reasons why the host is not ready; the index and the chain tracker are added. */
  readiness?: Readiness
  /** See `GatewayOptions`. */
  ancestors?: MissingAncestors
  /** Whether the index matches the admitted set; by default, it does. */
  index?: () => IndexStatus
  /** See `GatesOptions`. */
  position?: (() => number) | undefined
  /** The parts that know the chain and follow it, for `/health`. */
  chain?: ChainParts
  /** See `ArcIngestOptions`. */
  passOn?: ((txid: string, proof: Proof) => Promise<void>) | undefined
  /** How far the tree of names was followed; by default, nothing is followed. */
  progress?: TreeProgress
  logger: Logger
}

/** All routes of the server, behind its gates and the responses that are cached. */
export function createApp(options: AppOptions): App {
  const { config, graph, ping, logger } = options
  const { engine, discovery, proofs, refused } = options.overlay
  const { limits, profile, maxBodyBytes } = config
  const { metrics = new Metrics() } = options
  const queue = queueSubmissions(options.submit ?? engine.submit, limits)
  const submit = metrics.counted(options.sightings ? withSightings(queue, options.sightings) : queue)
  const { index = () => ({ state: 'equal', done: 1 }), readiness = new Readiness() } = options
  const { progress = NOTHING_FOLLOWED } = options
  readiness.add('index', () => notReadyReason(index()))
  readiness.add('tracker', () => proofs.headers?.outage)
  const gates = createGates({ limits, index, position: options.position })
  const {
    app,
    bodies,
    transfers,
    answerStored,
    hosted,
    render,
    errorPage: page,
    hostsOf,
  } = readApp({
    ...{ config, graph, logger, progress },
    ...(options.ancestors && { ancestors: options.ancestors }),
    port: options.port,
    chain: () => chainStatus(options.chain ?? {}),
  })
  const service = () => ({
    name: 'minetree' as const,
    advertisableFQDN: config.hostingUrl === undefined ? '' : new URL(config.hostingUrl).hostname,
    port: options.port?.() ?? config.port,
    network: config.network,
    topicManagerCount: Object.keys(engine.managers).length,
    lookupServiceCount: Object.keys(engine.lookupServices).length,
  })
  const health = healthOf({
    service,
    ping,
    readiness,
    index,
    refused,
    chain: options.chain,
  })
  const document = () => openapiDocument({ profile, version: packageVersion() })
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
    progress,
  })
  const plainErrors = errorResponse({ logger, page })
  const overlayErrors = errorResponse({ logger, overlay: true, page })
  const errors: ErrorRequestHandler = (error, request, response, next) =>
    (isOverlayPath(request.path) ? overlayErrors : plainErrors)(error, request, response, next)
  const refuse: RequestHandler = (request, _response, next) => next(refusalOf(app, request))
  /** No route has other methods, and Express would answer OPTIONS. */
  const refuseOther: RequestHandler = (request, response, next) => {
    if (METHODS.has(request.method)) next()
    else refuse(request, response, next)
  }
  const ahead: RequestHandler = (request, response, next) => {
    if (request.method === 'POST' || isAdmin(request.path)) next()
    else if (METHODS.has(request.method)) answerStored(request, response, next)
    else refuse(request, response, next)
  }
  const admin = express
    .Router()
    .use(
      gates.operator,
      requireAdmin(config.adminToken),
      refuseOther,
      gates.index,
      blockingRoutes({ graph, logger, bodies }),
      headersRoutes(options.reorgMonitor, { engine, bodies }),
      refuse,
      overlayErrors,
    )
  app
    .use('/admin', admin)
    .use(deploymentRoutes(config, graph))
    .use(minePageRoutes(options.pageFiles, { render, hostsOf }))
    .use(explorerFileRoutes(options.pageFiles, hostsOf))
    .use(healthRoutes(health))
    .use(metricsRoutes(metrics))
    .use(openapiRoutes(document))
    .use(statusRoutes({ health, document, render, hostsOf }))
    .use(errors)
    .use(
      gates.overlay,
      express.Router().use(below('/overlay'), overlay).use(overlay),
      arcIngestRoutes({
        ...{ engine, graph, proofs, bodies },
        record: (sightings) => recordSightings({ graph, overlay: options.overlay }, sightings),
        maxTrackerBlocks: limits.maxTrackerBlocks,
        token: config.arcCallbackToken,
        passOn: options.passOn,
      }),
      overlayErrors,
    )
    .use(refuse)
    .use(errors)
  return aheadOfRoutes(app, {
    ...{ handlers: [gates.gateway, ahead], errors, transfers },
    hosted: hosted && { ...hosted, gate: gates.hosted },
  })
}

/** The methods of all routes. */
const METHODS = new Set(['GET', 'HEAD', 'POST'])
