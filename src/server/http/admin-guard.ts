import { createHash, timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { CACHE } from '../../gateway/http/caching.js'
import { AnswerError, NotFoundError } from '../../gateway/http/errors.js'
import { STORE_ERRORS } from '../../gateway/http/operation.js'

/** Whoever asks has not shown the token that it takes. */
export class UnauthorizedError extends AnswerError {
  override readonly name = 'UnauthorizedError'
  readonly status = 401
  readonly code = 'UNAUTHORIZED'
  override readonly headers = { 'WWW-Authenticate': 'Bearer realm="minetree"' }

  /** @param what Which token, for a person. */
  constructor(what: string) {
    super(`this route requires ${what}, sent as Authorization: Bearer <token>`)
  }
}

/** Errors of every operation behind {@link requireAdmin}. */
export const OPERATOR_ERRORS = {
  UNAUTHORIZED: 'The token is missing or wrong.',
  NOT_FOUND: 'The operator has set no token, so there are no such routes.',
  ...STORE_ERRORS,
}

/**
 * Stands before the routes of the operator, and lets nobody past who does not show the token. What comes behind it is
 * never kept by a cache. It is to stand before CORS: no preflight has the token, so that no page of another origin gets
 * to what is behind it.
 *
 * @param token Without one, this host has no such routes.
 * @throws UnauthorizedError where another token is shown, or none; NotFoundError where the host has none.
 */
export function requireAdmin(token: string | undefined): RequestHandler {
  const guard = token === undefined ? undefined : requireBearer(token, "the operator's token")
  return function adminGuard(request, response, next) {
    if (guard === undefined) throw new NotFoundError('this route is disabled: ADMIN_TOKEN is not set')
    response.set('Cache-Control', CACHE.none)
    guard(request, response, next)
  }
}

/**
 * Lets nobody past who does not show a token (RFC 6750). Tokens are compared by their SHA-256, in a time that does not
 * depend on where they differ, nor on how long the one is that was sent.
 *
 * @param what Which token it is, for a person.
 * @throws UnauthorizedError where another token is shown, or none.
 */
export function requireBearer(token: string, what: string): RequestHandler {
  const expected = digest(token)
  return function bearerGuard(request, _response, next) {
    const [, shown] = /^Bearer +(\S+) *$/i.exec(request.get('Authorization') ?? '') ?? []
    if (shown === undefined || !timingSafeEqual(digest(shown), expected)) throw new UnauthorizedError(what)
    next()
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest()
}
