import type { ErrorRequestHandler, Request, Response } from 'express'
import { LRUCache } from 'lru-cache'
import type { BaseLogger } from 'pino'
import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import { isStoreFull, QueryError, StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { PointerError } from '../../../backend/src/protocol/outpoint.js'
import { ReaderLeftError } from './long-read.js'
import { sendJson } from './send-json.js'

/** Every `code` of an error body (`spec/http.md`, Errors), with the status that routes answer it with. */
export const ERROR_STATUSES = {
  BAD_OUTPOINT: 400,
  BAD_SEQUENCE: 400,
  BAD_NAME: 400,
  BAD_BODY: 400,
  NESTING_TOO_DEEP: 400,
  UNAUTHORIZED: 401,
  NOT_FOUND: 404,
  TAKEN: 404,
  CONFLICT: 409,
  PRECONDITION_FAILED: 412,
  TOO_LARGE: 413,
  UNSUPPORTED_ENCODING: 415,
  RANGE_NOT_SATISFIABLE: 416,
  RATE_LIMITED: 429,
  BLOCKED: 451,
  INTERNAL: 500,
  NOT_READY: 503,
  STORE_FULL: 503,
} as const

export type ErrorCode = keyof typeof ERROR_STATUSES

/** An error that is the answer: what it says goes to whoever asked. */
export abstract class AnswerError extends Error {
  abstract readonly status: number
  abstract readonly code: ErrorCode
  /** Further fields of the body. */
  readonly data?: Record<string, unknown>
  /** Headers that belong to the answer. */
  readonly headers?: Record<string, string>
}

/** Nothing here answers to that. */
export class NotFoundError extends AnswerError {
  override readonly name = 'NotFoundError'
  readonly status = 404

  constructor(
    message: string,
    readonly code: 'NOT_FOUND' | 'TAKEN' = 'NOT_FOUND',
  ) {
    super(message)
  }
}

/** What was sent cannot be what it should be. */
export class BadRequestError extends AnswerError {
  override readonly name = 'BadRequestError'
  readonly status = 400

  constructor(
    readonly code: 'BAD_OUTPOINT' | 'BAD_NAME' | 'BAD_BODY' | 'BAD_SEQUENCE' | 'NESTING_TOO_DEEP',
    message: string,
  ) {
    super(message)
  }
}

/** A body or a list over its limit. */
export class TooLargeError extends AnswerError {
  override readonly name = 'TooLargeError'
  readonly status = 413
  readonly code = 'TOO_LARGE'
}

/** A range of which the content has no byte. `length` is that of the content, in bytes. */
export class RangeNotSatisfiableError extends AnswerError {
  override readonly name = 'RangeNotSatisfiableError'
  readonly status = 416
  readonly code = 'RANGE_NOT_SATISFIABLE'
  override readonly headers: Record<string, string>

  constructor(length: number) {
    super(`the content has ${length} bytes, and none in that range`)
    this.headers = { 'Content-Range': `bytes */${length}` }
  }
}

/** What would be sent is not what `If-Match` asks for. */
export class PreconditionFailedError extends AnswerError {
  override readonly name = 'PreconditionFailedError'
  readonly status = 412
  readonly code = 'PRECONDITION_FAILED'

  constructor() {
    super('what is here has another entity tag than If-Match names')
  }
}

/** Not able to answer now; later, perhaps. */
export class NotReadyError extends AnswerError {
  override readonly name = 'NotReadyError'
  readonly status = 503
  readonly code = 'NOT_READY'
}

/** What an error is answered with. */
export interface Answer {
  status: number
  code: ErrorCode
  message: string
  data?: Record<string, unknown>
  headers?: Record<string, string>
}

/** The one table from errors to answers. What is not in it is our fault: logged in full, and said in one word. */
export function answerFor(error: unknown): Answer | undefined {
  if (error instanceof AnswerError) return error
  if (error instanceof PointerError) return { status: 400, code: error.code, message: error.message }
  if (isStoreFull(error)) {
    const message = 'the store is full; nothing can be written until the operator makes room'
    return { status: 503, code: 'STORE_FULL', message, headers: { 'Retry-After': '60' } }
  }
  if (error instanceof UnstableReadError || error instanceof StoreUnavailableError)
    return { status: 503, code: 'NOT_READY', message: error.message, headers: { 'Retry-After': '1' } }
  if (error instanceof QueryError || error instanceof BeefError) {
    return { status: 400, code: 'BAD_BODY', message: error.message }
  }
  if (error instanceof BlockedError) return { status: 451, code: error.code, message: error.message }
  const status = bodyParserStatus(error)
  if (status === 413) return { status, code: 'TOO_LARGE', message: 'the body is over the limit' }
  if (status !== undefined) return { status: 400, code: 'BAD_BODY', message: 'the request cannot be read' }
  return undefined
}

/** Express and its body parser mark what the caller did wrong with a status of 4xx. */
function bodyParserStatus(error: unknown): number | undefined {
  if (!(error instanceof Error && 'status' in error && typeof error.status === 'number')) return undefined
  return error.status >= 400 && error.status < 500 ? error.status : undefined
}

/** Headers that may be set already, and speak of the body that is not sent. */
const DESCRIBING = ['ETag', 'Content-Type', 'Content-Length', 'Content-Range', 'Accept-Ranges']

export interface ErrorResponseOptions {
  logger: Pick<BaseLogger, 'error' | 'warn'>
  /** Add the fields that overlay clients expect (`spec/http.md`, Overlay). */
  overlay?: boolean
}

function aboutRequest(request: Request, response: Response): Record<string, unknown> {
  // Whoever asked has the id, too: so a line is found by what he saw.
  return {
    requestId: response.getHeader('X-Request-Id'),
    method: request.method,
    url: request.originalUrl,
  }
}

const MINUTE = 60_000
/** How many reasons are told apart at a time. */
const MAX_REASONS = 100
/** The reasons that were logged within the last minute, of each log. */
const recent = new WeakMap<ErrorResponseOptions['logger'], LRUCache<string, true>>()

/**
 * Not able to answer now (503) is an answer that is meant, and as many get it as ask: a line a minute for each reason says
 * so, without a stack. Reasons that differ in nothing but numbers are one.
 */
function logUnable(
  logger: ErrorResponseOptions['logger'],
  told: { answer: Answer; error: unknown; request: Request; response: Response },
): void {
  const { answer, error, request, response } = told
  const logged = recent.get(logger) ?? new LRUCache({ max: MAX_REASONS, ttl: MINUTE })
  recent.set(logger, logged)
  const reason = answer.message.replace(/\d+/g, '#')
  if (logged.has(reason)) return
  logged.set(reason, true)
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : undefined
  const about = { ...aboutRequest(request, response), code: answer.code, reason: answer.message, cause }
  logger.warn(about, 'not able to answer; at most one line a minute says so')
}

/** Answers every error in the one shape that all routes share. */
export function errorResponse({ logger, overlay = false }: ErrorResponseOptions): ErrorRequestHandler {
  return (error: unknown, request, response: Response, _next) => {
    // Nobody is there to be answered, and nothing went wrong.
    if (error instanceof ReaderLeftError && response.destroyed) return
    const answer = answerFor(error) ?? {
      status: 500,
      code: 'INTERNAL',
      message: 'something went wrong here; it has been logged',
    }
    // For whoever counts or logs what was answered.
    response.locals.code = answer.code
    if (answer.status === 503) logUnable(logger, { answer, error, request, response })
    else if (answer.status >= 500)
      logger.error({ ...aboutRequest(request, response), err: error }, 'request failed')
    if (response.headersSent) {
      // The head is out: only a broken connection tells that the body is not whole.
      response.destroy()
      return
    }
    for (const name of DESCRIBING) response.removeHeader(name)
    response.status(answer.status).set({ ...answer.headers, 'Cache-Control': 'no-store' })
    sendJson(response, {
      ...answer.data,
      error: answer.message,
      code: answer.code,
      ...(overlay && { status: 'error', message: answer.message }),
    })
  }
}
