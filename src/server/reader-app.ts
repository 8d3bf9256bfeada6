import type { Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import { errorResponse } from '../gateway/http/error-response.js'
import type { MissingAncestors } from '../gateway/http/pending-origins.js'
import type { Config } from './config/config.js'
import { createGates } from './http/gates.js'
import { type App, aheadOfRoutes } from './http/hot-path.js'
import { readApp } from './read-app.js'
import type { IndexStatus } from './store/index-maintenance.js'
import { passOn, type WriterAddress, writersChain } from './workers/passed-on.js'

/** The app of a reader: what needs nothing but the store, behind the gates of the host. It passes everything else on. */
export function createReaderApp({
  config,
  graph,
  ancestors,
  index,
  reads,
  writer,
  port,
  logger,
}: {
  config: Config
  graph: GraphStore
  /** See `GatewayOptions`. They count only if the host follows the chain. */
  ancestors: MissingAncestors
  index: () => IndexStatus
  /** Counts the reads of each client for all processes. */
  reads: Store
  writer: WriterAddress
  /** The port that it listens on, once it does; by default, the one in the settings. */
  port?: () => number | undefined
  logger: Logger
}): App {
  const { limits, deployment, chainSources } = config
  const isFollowing = deployment !== undefined && chainSources.length > 0
  const { app, answerStored, hosted, errorPage } = readApp({
    ...{ config, graph, port, logger },
    ...(isFollowing && { ancestors }),
    chain: writersChain(writer),
  })
  const errors = errorResponse({ logger, page: errorPage })
  app.use(passOn(writer)).use(errors)
  const gates = createGates({ limits, index, reads })
  return aheadOfRoutes(app, {
    ...{ handlers: [gates.gateway, answerStored], errors },
    hosted: hosted && { ...hosted, gate: gates.hosted },
  })
}
