import type { ErrorRequestHandler, Request, Response } from 'express'
import { LRUCache } from 'lru-cache'
import { DamagedError } from '../../../backend/src/graph/errors.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import type { Exchange } from './caching.js'
import {
  type Answer,
  answerFor,
  ERROR_STATUSES,
  type ErrorCode,
  type ErrorLogger,
  OriginUnknownError,
  originPending,
} from './errors.js'
import { ReaderLeftError } from './long-read.js'
import type { PendingOrigins } from './pending-origins.js'
import { type HeaderFor, HTML_TYPE, sendJson, sendText, setHeaders } from './send-body.js'

/** Headers of the body that is not sent. They may have been set before the error. */
const BODY_HEADERS = [
  'ETag',
  'Content-Encoding',
  'Content-Type',
  'Content-Length',
  'Content-Range',
  'Accept-Ranges',
  'Repr-Digest',
  'Content-Digest',
]

export interface ErrorResponseOptions {
  logger: ErrorLogger
  /** Adds the fields that overlay clients expect (`docs/spec/http.md`, Overlay). */
  overlay?: boolean
  /** Only asked if something was not found. */
  pending?: PendingOrigins
  /** Renders errors for people; by default, everybody gets JSON. */
  page?: ErrorPage | undefined
}

export interface ShownError {
  status: number
  code: ErrorCode
  message: string
  data?: Answer['data']
  requestId?: string
}

export type ErrorPage = (
  error: ShownError,
) => Promise<{ headers: Readonly<Record<string, HeaderFor[1]>>; html: string }>

export function errorResponse({
  logger,
  overlay = false,
  pending,
  page,
}: ErrorResponseOptions): ErrorRequestHandler {
  const specific = async (error: unknown): Promise<unknown> => {
    if (!(error instanceof OriginUnknownError)) return error
    return (await pending?.isPending(error.outpoint)) ? originPending() : error
  }
  return async (thrown: unknown, request, response: Response, _next) => {
    const error = await specific(thrown).catch((failure: unknown) => failure)
    // The client has left; nothing went wrong.
    if (error instanceof ReaderLeftError && response.destroyed) return
    const internal: Answer = { code: 'INTERNAL', message: 'internal error; it has been logged' }
    const answer = answerFor(error) ?? internal
    const status = ERROR_STATUSES[answer.code]
    // For metrics and the request log.
    response.locals.code = answer.code
    if (status === 503) logUnavailable(logger, { answer, error, request, response })
    // The site is at fault, not this host.
    else if (status >= 500 && answer.code !== 'BAD_REDIRECTS')
      logger.error({ ...requestFields(request, response), err: error }, 'request failed')
    if (response.headersSent) {
      // The head was sent, so only a broken connection shows the client that the body is incomplete.
      response.destroy()
      return
    }
    for (const name of BODY_HEADERS) response.removeHeader(name)
    response.status(status).set({ ...answer.headers, 'Cache-Control': 'no-store' })
    if (page !== undefined) {
      // A cache must not send one kind of client the other's error.
      response.vary('Accept')
      if (prefersHtml(request)) {
        const { code, message, data } = answer
        if (await sentPage(page, { response, request, error: { status, code, message, data } })) return
      }
    }
    sendJson(response, {
      ...answer.data,
      error: answer.message,
      code: answer.code,
      ...(overlay && { status: 'error', message: answer.message }),
    })
  }
}

/** Whether a request prefers a page to JSON, as when a browser opens a page. A client that accepts anything gets JSON. */
function prefersHtml(request: Request): boolean {
  return (
    request.headers.accept?.includes('text/html') === true && request.accepts(JSON_OR_HTML) === 'text/html'
  )
}

const JSON_OR_HTML = ['application/json', 'text/html']

/** Sends an error as a page; false if it cannot be rendered. */
async function sentPage(
  page: ErrorPage,
  { request, response, error }: Exchange & { error: ShownError },
): Promise<boolean> {
  const requestId = String(response.getHeader('X-Request-Id'))
  const rendered = await page({ ...error, requestId }).catch(() => undefined)
  if (rendered === undefined) return false
  setHeaders({ request, response, headers: Object.entries(rendered.headers) })
  sendText(response, rendered.html, HTML_TYPE)
  return true
}

function requestFields(request: Request, response: Response): Record<string, unknown> {
  // The client has the id too, so a user's report leads to the log line.
  return {
    requestId: response.getHeader('X-Request-Id'),
    ...(response.locals.host !== undefined && { host: response.locals.host }),
    method: request.method,
    url: request.originalUrl,
  }
}

const MINUTE = 60_000
const MAX_REASONS = 100
/** The reasons written to each log in the last minute. */
const recent = new WeakMap<ErrorLogger, LRUCache<string, true>>()

/**
 * A 503 is expected, and every request may get one: each reason is logged once a minute, without a stack. Reasons that differ
 * only in numbers count as one.
 */
function logUnavailable(
  logger: ErrorLogger,
  { answer, error, request, response }: Exchange & { answer: Answer; error: unknown },
): void {
  const logged = recent.get(logger) ?? new LRUCache({ max: MAX_REASONS, ttl: MINUTE })
  recent.set(logger, logged)
  const isDamage = answer.code === 'DAMAGED'
  const reason = error instanceof DamagedError ? error.owner : answer.message.replace(/\d+/g, '#')
  if (logged.has(reason)) return
  logged.set(reason, true)
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : undefined
  const said = isDamage ? messageOf(error) : answer.message
  const fields = { ...requestFields(request, response), code: answer.code, reason: said, cause }
  if (isDamage) {
    logger.error(fields, 'stored bytes are damaged: `minetree check` lists all damage')
    return
  }
  logger.warn(fields, 'answered 503; logged at most once a minute per reason')
}
