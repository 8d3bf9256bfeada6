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
import { type ErrorDetails, GeneralError } from '../../../backend/src/protocol/coded-error.js'
import { type Outpoint, PointerError } from '../../../backend/src/protocol/outpoint.js'
import { PatchError } from '../../../backend/src/protocol/patch.js'
import { RedirectsError } from '../../../backend/src/protocol/redirects.js'

/** The `code` of each error body (`docs/spec/http.md`, Errors), with its status. */
export const ERROR_STATUSES = {
  BAD_OUTPOINT: 400,
  BAD_SEQUENCE: 400,
  BAD_NAME: 400,
  BAD_BODY: 400,
  BAD_DIRECTORY: 400,
  BAD_PATCH: 400,
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
  UNSUPPORTED_IMAGE: 415,
  RANGE_NOT_SATISFIABLE: 416,
  BAD_IMAGE: 422,
  RATE_LIMITED: 429,
  BLOCKED: 451,
  INTERNAL: 500,
  BAD_REDIRECTS: 500,
  DAMAGED: 503,
  NOT_CAUGHT_UP: 503,
  NOT_READY: 503,
  STORE_FULL: 503,
} as const

export type ErrorCode = keyof typeof ERROR_STATUSES

/** The part of a pino logger that is used, for errors that clients do not see. */
export interface ErrorLogger {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** The response to an error; the code determines its status. */
export interface Answer {
  code: ErrorCode
  message: string
  data?: Readonly<Record<string, unknown>>
  headers?: Record<string, string>
}

/** When to retry after an error, in seconds. */
const RETRY_AFTER: Partial<Record<ErrorCode, number>> = {
  // Catching up takes minutes; a source takes some seconds for each missing ancestor.
  NOT_CAUGHT_UP: 30,
  ORIGIN_PENDING: 10,
  NOT_READY: 5,
  STORE_FULL: 60,
}

interface AnswerDetails extends ErrorDetails {
  /** Added to those of the code (`Retry-After`). */
  headers?: Record<string, string>
}

export class AnswerError extends GeneralError<ErrorCode> implements Answer {
  override readonly name: string = 'AnswerError'
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, message: string, { headers, ...details }: AnswerDetails = {}) {
    super(code, message, details)
    this.headers = { ...retryAfter(code), ...headers }
  }
}

/** The header that says when to retry, for temporary errors. */
export function retryAfter(code: ErrorCode): { 'Retry-After'?: string } {
  const seconds = RETRY_AFTER[code]
  return seconds === undefined ? {} : { 'Retry-After': String(seconds) }
}

/** The path is known, but does not have the method. */
export function methodNotAllowed(method: string, allowed: readonly string[]): AnswerError {
  const allow = allowed.join(', ')
  return new AnswerError('METHOD_NOT_ALLOWED', `this path does not accept ${method}, only ${allow}`, {
    headers: { Allow: allow },
  })
}

/** The answer depends on the origin of an ordinal, which is not known here. */
export class OriginUnknownError extends AnswerError {
  constructor(
    message: string,
    readonly outpoint: Outpoint,
  ) {
    super('NOT_FOUND', message)
  }
}

/** Nothing was found. If an outpoint is given, the reason may be that the origin of its ordinal is unknown. */
export function unknownHere(message: string, outpoint: Outpoint | undefined): AnswerError {
  return outpoint === undefined
    ? new AnswerError('NOT_FOUND', message)
    : new OriginUnknownError(message, outpoint)
}

/** @param outpoint An output of the ordinal; undefined if there is none. */
export function noSuchStep(outpoint: Outpoint | undefined): AnswerError {
  return unknownHere('the ordinal has no such step here, or its origin is unknown here', outpoint)
}

/** Transactions that determine where an ordinal came from or went are still being fetched. */
export function originPending(): AnswerError {
  return new AnswerError(
    'ORIGIN_PENDING',
    'part of the history of this ordinal is missing here and is being fetched; try again',
  )
}

/** The only mapping from errors to answers. Undefined for others: our fault, logged in full and reported as INTERNAL. */
export function answerFor(error: unknown): Answer | undefined {
  if (error instanceof AnswerError) return error
  if (error instanceof PointerError || error instanceof BlockedError || error instanceof ChainTrackerError)
    return error
  if (error instanceof RedirectsError) return error
  if (error instanceof PatchError)
    return error.code === 'BAD_PATCH'
      ? { code: error.code, message: error.message }
      : { code: 'NOT_FOUND', message: `a patch that is served raw only: ${error.message}` }
  if (isStoreFull(error)) {
    const message =
      'the store is full; try again once the operator has freed space (what was sent may already be stored by then)'
    return { code: 'STORE_FULL', message, headers: retryAfter('STORE_FULL') }
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

/** Express and its body parser mark client errors with a 4xx status. */
function bodyParserStatus(error: unknown): number | undefined {
  if (!(error instanceof Error && 'status' in error && typeof error.status === 'number')) return undefined
  return error.status >= 400 && error.status < 500 ? error.status : undefined
}
