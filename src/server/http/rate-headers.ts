import { createHash } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AugmentedRequest, RateLimitInfo } from 'express-rate-limit'
import { LRUCache } from 'lru-cache'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** Over how long requests are counted, in milliseconds. */
const WINDOW = 60_000

/** The `pk` of clients in `RateLimit-Policy`, by their keys: a hash, as a header must not say who they are. */
const partitionKeys = new LRUCache<string, string>({
  max: 1000,
  memoMethod: (client) => {
    const hash = createHash('sha256').update(client).digest('hex').slice(0, 12)
    return Buffer.from(hash).toString('base64')
  },
})

/**
 * Sets `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers, 8) of a request that `express-rate-limit` has
 * counted. It would hash the key of the client each time.
 *
 * @returns In how many seconds the limit starts again.
 */
export function setRateHeaders(request: Request, response: Response, identifier: string): number {
  const { limit, remaining, resetTime, key } = (request as AugmentedRequest).rateLimit as RateLimitInfo
  const wait = resetTime === undefined ? WINDOW : resetTime.getTime() - monotonic()
  const seconds = Math.max(0, Math.ceil(wait / 1000))
  response.setHeader('RateLimit', `"${identifier}"; r=${remaining}; t=${seconds}`)
  const policy = `q=${limit}; w=${WINDOW / 1000}; pk=:${partitionKeys.memo(key)}:`
  response.setHeader('RateLimit-Policy', `"${identifier}"; ${policy}`)
  return seconds
}
