import { createHash, timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { CACHE } from '../../gateway/http/caching.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { STORE_ERRORS } from '../../gateway/http/operation.js'

/** The errors of all operations behind {@link requireAdmin}. */
export const OPERATOR_ERRORS = {
  UNAUTHORIZED: 'The token is missing or wrong.',
  NOT_FOUND: 'The operator has set no token, so there are no such routes.',
  ...STORE_ERRORS,
}

/**
 * Requires the operator's token for the routes after it, whose responses are never cached. There must be no CORS headers: a
 * preflight has no token, so no page of another origin can use these routes.
 *
 * @param token If undefined, this host has no such routes.
 * @throws AnswerError if the token is wrong or missing, or the host has none.
 */
export function requireAdmin(token: string | undefined): RequestHandler {
  const guard = token === undefined ? undefined : requireBearer(token, "the operator's token")
  return function adminGuard(request, response, next) {
    if (guard === undefined)
      throw new AnswerError('NOT_FOUND', 'this route is disabled: ADMIN_TOKEN is not set')
    response.set('Cache-Control', CACHE.none)
    guard(request, response, next)
  }
}

/**
 * Requires a bearer token (RFC 6750). Tokens are compared by their SHA-256, so the time does not depend on where they differ or
 * on the length of the one that was sent.
 *
 * @param what The required token, for messages.
 * @throws AnswerError if the token is wrong or missing.
 */
export function requireBearer(token: string, what: string): RequestHandler {
  const expected = digest(token)
  return function bearerGuard(request, _response, next) {
    const [, shown] = /^Bearer +(\S+) *$/i.exec(request.get('Authorization') ?? '') ?? []
    if (shown === undefined || !timingSafeEqual(digest(shown), expected)) throw unauthorized(what)
    next()
  }
}

function unauthorized(what: string): AnswerError {
  return new AnswerError(
    'UNAUTHORIZED',
    `this route requires ${what}, sent as Authorization: Bearer <token>`,
    {
      headers: { 'WWW-Authenticate': 'Bearer realm="minetree"' },
    },
  )
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest()
}
