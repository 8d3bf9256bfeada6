import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import {
  ChainTrackerError,
  isDamage,
  isStoreFull,
  QueryError,
  StoreUnavailableError,
  UnstableReadError,
} from '../../../backend/src/graph/errors.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { CodedError, type ErrorDetails } from '../../../backend/src/protocol/coded-error.js'
import { type Outpoint, PointerError } from '../../../backend/src/protocol/outpoint.js'

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
  ORIGIN_PENDING: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PRECONDITION_FAILED: 412,
  TOO_LARGE: 413,
  UNSUPPORTED_ENCODING: 415,
  RANGE_NOT_SATISFIABLE: 416,
  RATE_LIMITED: 429,
  BLOCKED: 451,
  INTERNAL: 500,
  DAMAGED: 503,
  NOT_CAUGHT_UP: 503,
  NOT_READY: 503,
  STORE_FULL: 503,
} as const

export type ErrorCode = keyof typeof ERROR_STATUSES

/** The part of a pino logger that is used for errors that clients do not see. */
export interface ErrorLogger {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** The response to an error; its status is that of the code. */
export interface Answer {
  code: ErrorCode
  message: string
  /** Further fields of the body. */
  data?: Readonly<Record<string, unknown>>
  /** Headers that belong to the answer. */
  headers?: Record<string, string>
}

/** An error that the client gets as the answer, with its message. */
export abstract class AnswerError extends CodedError<ErrorCode> implements Answer {
  readonly headers?: Record<string, string>
}

/** There is no such thing here. */
export class NotFoundError extends AnswerError {
  override readonly name = 'NotFoundError'

  constructor(
    message: string,
    readonly code: 'NOT_FOUND' | 'TAKEN' = 'NOT_FOUND',
    details?: ErrorDetails,
  ) {
    super(message, details)
  }
}

/** The path is known, and has no such method. */
export class MethodNotAllowedError extends AnswerError {
  override readonly name = 'MethodNotAllowedError'
  readonly code = 'METHOD_NOT_ALLOWED'
  override readonly headers: Record<string, string>

  /** @param allowed The methods that it has. */
  constructor(method: string, allowed: readonly string[]) {
    const allow = allowed.join(', ')
    super(`this path has no ${method}, but ${allow}`)
    this.headers = { Allow: allow }
  }
}

/** What was asked for follows from the origin of an ordinal, which is not known here. */
export class OriginUnknownError extends NotFoundError {
  constructor(
    message: string,
    readonly outpoint: Outpoint,
  ) {
    super(message)
  }
}

/** When to ask again for an ordinal whose missing ancestors are on the way, in seconds: a source takes some for each. */
const ORIGIN_RETRY = 10

/** Where an ordinal came from, or where it went, follows from transactions that are being fetched. */
export class OriginPendingError extends AnswerError {
  override readonly name = 'OriginPendingError'
  readonly code = 'ORIGIN_PENDING'
  override readonly headers = { 'Retry-After': String(ORIGIN_RETRY) }

  constructor() {
    super(
      'where this ordinal came from or went is not known here yet: what is missing is being fetched; try again',
    )
  }
}

/** The request is malformed. */
export class BadRequestError extends AnswerError {
  override readonly name = 'BadRequestError'

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
  readonly code = 'TOO_LARGE'
}

/** A range that covers no byte of the content. `length` is that of the content, in bytes. */
export class RangeNotSatisfiableError extends AnswerError {
  override readonly name = 'RangeNotSatisfiableError'
  readonly code = 'RANGE_NOT_SATISFIABLE'
  override readonly headers: Record<string, string>

  constructor(length: number) {
    super(`the range is beyond the ${length} bytes of the content`)
    this.headers = { 'Content-Range': `bytes */${length}` }
  }
}

/** `If-Match` names another entity tag. */
export class PreconditionFailedError extends AnswerError {
  override readonly name = 'PreconditionFailedError'
  readonly code = 'PRECONDITION_FAILED'

  constructor() {
    super('the entity tag does not match If-Match')
  }
}

/** No answer is possible now; it may be later. */
export class NotReadyError extends AnswerError {
  override readonly name = 'NotReadyError'
  readonly code = 'NOT_READY'
  override readonly headers: Record<string, string> = { 'Retry-After': '5' }
}

/** The one table from errors to answers. Undefined for any other error: our fault, logged in full and reported as INTERNAL. */
export function answerFor(error: unknown): Answer | undefined {
  if (error instanceof AnswerError) return error
  if (error instanceof PointerError || error instanceof BlockedError || error instanceof ChainTrackerError)
    return error
  if (isStoreFull(error)) {
    const message = 'the store is full; nothing can be written until the operator frees space'
    return { code: 'STORE_FULL', message, headers: { 'Retry-After': '60' } }
  }
  if (error instanceof UnstableReadError || error instanceof StoreUnavailableError)
    return { code: 'NOT_READY', message: error.message, headers: { 'Retry-After': '1' } }
  if (isDamage(error)) return { code: 'DAMAGED', message: 'the stored bytes are damaged; it has been logged' }
  if (error instanceof QueryError || error instanceof BeefError)
    return { code: 'BAD_BODY', message: error.message }
  const status = bodyParserStatus(error)
  if (status === 413) return { code: 'TOO_LARGE', message: 'the body exceeds the limit' }
  if (status !== undefined) return { code: 'BAD_BODY', message: 'the request is malformed' }
  return undefined
}

/** Express and its body parser mark the client's errors with a status of 4xx. */
function bodyParserStatus(error: unknown): number | undefined {
  if (!(error instanceof Error && 'status' in error && typeof error.status === 'number')) return undefined
  return error.status >= 400 && error.status < 500 ? error.status : undefined
}
