import { createHash, timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { CACHE } from '../gateway/cache-policy.js'
import { AnswerError, NotFoundError } from '../gateway/error-response.js'

/** Whoever asks has not shown the operator's token. */
export class UnauthorizedError extends AnswerError {
  override readonly name = 'UnauthorizedError'
  readonly status = 401
  readonly code = 'UNAUTHORIZED'
  override readonly headers = { 'WWW-Authenticate': 'Bearer realm="minetree"' }

  constructor() {
    super("this takes the operator's token, as Authorization: Bearer <token>")
  }
}

/**
 * Stands before the routes of the operator, and lets nobody past who does not show the token (RFC 6750). What comes
 * behind it is never kept by a cache.
 *
 * Tokens are compared by their SHA-256, in a time that does not depend on where they differ, nor on how long the one is
 * that was sent. It is to stand before CORS: no preflight has the token, so that no page of another origin gets to
 * what is behind it.
 *
 * @param token Without one, this host has no such routes.
 * @throws UnauthorizedError where another token is shown, or none; NotFoundError where the host has none.
 */
export function requireAdmin(token: string | undefined): RequestHandler {
  const expected = token === undefined ? undefined : digest(token)
  return function adminGuard(request, response, next) {
    if (expected === undefined)
      throw new NotFoundError('ADMIN_TOKEN is not set here: there are no such routes')
    const [, shown] = /^Bearer +(\S+) *$/i.exec(request.get('Authorization') ?? '') ?? []
    if (shown === undefined || !timingSafeEqual(digest(shown), expected)) throw new UnauthorizedError()
    response.set('Cache-Control', CACHE.none)
    next()
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest()
}
