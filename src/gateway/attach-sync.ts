import { type ErrorRequestHandler, Router } from 'express'
import { pino } from 'pino'
import { meansTopic, TOPICS } from '../../backend/src/protocol/profile.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { GatewayApp } from './gateway-options.js'
import { errorResponse } from './http/error-response.js'
import { AnswerError, ERROR_STATUSES, type ErrorLogger } from './http/errors.js'
import { RequestBodies } from './http/request-body.js'
import { syncRoutes } from './sync/sync-routes.js'

/**
 * Answers the peers that sync `tm_names` and `tm_ordinals` from the host's index, in place of its engine, which serves nothing
 * that is spent behind a proven transaction. What is of other topics passes on to the engine.
 *
 * Call it before `start`, as `attachGateway`. The app may be of Express 4. There are no limits per client: a public host puts its
 * own before these routes.
 *
 * @param stores Those of `storesOf`.
 */
export function attachSync(
  app: Pick<GatewayApp, 'use'>,
  { graph }: { graph: FactStore },
  { logger = pino({ name: 'minetree' }) }: { logger?: ErrorLogger } = {},
): void {
  const topics = Object.values(TOPICS)
  const { handler } = syncRoutes({
    graph,
    bodies: new RequestBodies(),
    topicOf: (name) => topics.find((topic) => meansTopic(name, topic)),
  })
  app.use(Router().use(handler, toEngine, errorResponse({ logger })))
}

/** What is not of these topics may be of the engine's others. */
const toEngine: ErrorRequestHandler = (error, request, _response, next) => {
  if (error instanceof AnswerError && [400, 404].includes(ERROR_STATUSES[error.code])) {
    // The mark by which the host's own parsers know that the body was read.
    if (request.readableEnded) Object.assign(request, { _body: true })
    next()
  } else next(error)
}
