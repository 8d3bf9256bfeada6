import express from 'express'
import type { Logger } from 'pino'
import { errorResponse } from '../gateway/http/error-response.js'
import { AnswerError } from '../gateway/http/errors.js'
import { crossOrigin } from '../gateway/http/security-headers.js'
import type { Config } from './config/config.js'
import { errorsByPath } from './http/gates.js'
import type { App } from './http/hot-path.js'
import { healthOf, healthRoutes } from './routes/health-routes.js'
import { type IndexStatus, notReadyReason } from './store/index-status.js'

/**
 * The app that answers while the store is being opened, which may take a while if a log is read first: it reports the progress,
 * and answers everything else with 503.
 */
export function startingApp(options: { config: Config; index: () => IndexStatus; logger: Logger }): App {
  const { config, index, logger } = options
  const reason = (): string => notReadyReason(index()) ?? 'the store is being opened'
  const health = healthOf({
    ...{ config, index, readiness: { index: reason } },
    port: () => config.port,
    ping: async () => {},
    refused: () => ({}),
  })
  const errors = errorsByPath(errorResponse({ logger, overlay: true }), errorResponse({ logger }))
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .use(crossOrigin(), healthRoutes(health).handler, (_request, _response, next) =>
      next(new AnswerError('NOT_READY', reason())),
    )
    .use(errors)
  const answer: (...given: Parameters<App>) => void = (request, response) => app(request, response)
  return Object.assign(answer, { express: app })
}
