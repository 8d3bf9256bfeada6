import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { Request, Response } from 'express'
import type { Logger } from 'pino'
import type { ErrorCode } from '../../gateway/http/errors.js'
import type { EndedRequest } from '../telemetry/request-metrics.js'

/** An id from elsewhere, as a proxy gives one: short, and of characters that mean nothing anywhere. */
const HARMLESS_ID = /^[\w.-]{1,64}$/

/**
 * Gives each request an id, which the answer has in `X-Request-Id` and its lines in the log as `requestId`, and tells of
 * it when it is over. In front of the app, so that nothing is answered unseen.
 *
 * @param options.log Where a line for each request goes; without one, only what fails is logged, by whoever answers it.
 */
export function withRequestId(
  listener: RequestListener,
  { onEnd, log }: { onEnd: (ended: EndedRequest) => void; log?: Logger },
): RequestListener {
  return (request, response) => {
    const started = performance.now()
    const given = request.headers['x-request-id']
    const requestId = typeof given === 'string' && HARMLESS_ID.test(given) ? given : randomUUID()
    response.setHeader('X-Request-Id', requestId)
    // Once for each answer, whether it went out or not.
    response.on('close', () => {
      // Express makes them its own, unless it is not even asked.
      const { locals } = response as Response
      const ended = {
        request: request as Request,
        status: response.statusCode,
        whole: response.writableFinished,
        code: locals?.code as ErrorCode | undefined,
        started,
      }
      onEnd(ended)
      log?.info({ requestId, ...line(ended) }, 'answered')
    })
    listener(request, response)
  }
}

function line({ request, status, code, whole, started }: EndedRequest): Record<string, unknown> {
  const milliseconds = Math.round(performance.now() - started)
  const { method, originalUrl, url } = request
  return { method, url: originalUrl ?? url, status, code, milliseconds, ...(!whole && { aborted: true }) }
}
