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
 * Answers peers that sync `tm_names` and `tm_ordinals` from the host's index, in place of its engine, which serves no spent
 * output behind a proven transaction. Requests for other topics are passed on to the engine.
 *
 * Call it before `start`, like `attachGateway`. The app may be of Express 4. There are no limits per client: a public host puts
 * its own before these routes.
 *
 * @param stores The stores from `storesOf`.
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

/** Passes on requests that are refused here: they may be for other topics of the engine. */
const toEngine: ErrorRequestHandler = (error, request, _response, next) => {
  if (error instanceof AnswerError && [400, 404].includes(ERROR_STATUSES[error.code])) {
    // This mark tells the host's own parsers that the body was read.
    if (request.readableEnded) Object.assign(request, { _body: true })
    next()
  } else next(error)
}
