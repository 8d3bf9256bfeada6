import express, { type ErrorRequestHandler } from 'express'
import type { Logger } from 'pino'
import { errorResponse } from '../gateway/http/error-response.js'
import { AnswerError } from '../gateway/http/errors.js'
import { crossOrigin } from '../gateway/http/security-headers.js'
import type { Config } from './config/config.js'
import { isOverlayPath } from './http/gates.js'
import type { App } from './http/hot-path.js'
import { Readiness } from './http/readiness.js'
import { healthOf, healthRoutes } from './routes/health-routes.js'
import { type IndexStatus, notReadyReason } from './store/index-status.js'

/**
 * What a server answers while its store is opened, which may take a while where a log is read first: how far that is, and 503 to
 * everything else.
 */
export function startingApp({
  config: { hostingUrl, port, network },
  index,
  logger,
}: {
  config: Config
  index: () => IndexStatus
  logger: Logger
}): App {
  const readiness = new Readiness()
  const reason = (): string => notReadyReason(index()) ?? 'the store is opened'
  readiness.add('index', reason)
  const advertisableFQDN = hostingUrl === undefined ? '' : new URL(hostingUrl).hostname
  const health = healthOf({
    service: () => ({
      ...{ name: 'minetree', advertisableFQDN, port, network },
      ...{ topicManagerCount: 0, lookupServiceCount: 0 },
    }),
    ping: async () => {},
    ...{ readiness, index },
    refused: () => ({}),
  })
  const [plain, ofOverlay] = [errorResponse({ logger }), errorResponse({ logger, overlay: true })]
  const errors: ErrorRequestHandler = (error, request, response, next) =>
    (isOverlayPath(request.path) ? ofOverlay : plain)(error, request, response, next)
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .use(crossOrigin(), healthRoutes(health), (_request, _response, next) =>
      next(new AnswerError('NOT_READY', reason())),
    )
    .use(errors)
  const answer: (...given: Parameters<App>) => void = (request, response) => app(request, response)
  return Object.assign(answer, { express: app })
}
