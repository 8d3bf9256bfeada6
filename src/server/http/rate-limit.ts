import { createHash } from 'node:crypto'
import type { Request, RequestHandler } from 'express'
import { LRUCache } from 'lru-cache'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { countTransactionsWith } from '../../gateway/http/long-read.js'

/** The period for counting requests, in milliseconds. */
const WINDOW = 60_000
/** The most clients that are counted. Beyond that, the one idle for longest is forgotten, which is never one that floods. */
const MAX_CLIENTS = 10_000

interface Client {
  requests: number
  /** When the window ends, on the monotonic clock, so that setting back the time of day does not prolong it. */
  until: number
  /** The `pk` of `RateLimit-Policy`: a hash, as a header must not reveal the client. */
  partition: string
}

/**
 * Limits how many requests a minute a client may send. Over the limit, the answer is 429 `RATE_LIMITED` with `Retry-After`, and
 * the connection ends, as the next request on it would cost as much. Every counted answer has `RateLimit` and
 * `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers, 8).
 *
 * @param options.rate Requests a minute; 0 is no limit.
 * @param options.transactionsPerRequest An answer counts as one more request per this many transactions.
 */
export function rateLimit(options: {
  identifier: string
  rate: number
  clientOf: (request: Request) => string
  transactionsPerRequest?: number
}): RequestHandler {
  const { identifier, rate, clientOf, transactionsPerRequest = Number.POSITIVE_INFINITY } = options
  if (rate === 0) return (_request, _response, next) => next()
  // With `max`, the cache would allocate all memory up front.
  const clients = new LRUCache<string, Client>({ maxSize: MAX_CLIENTS, sizeCalculation: () => 1 })
  return (request, response, next) => {
    const key = clientOf(request)
    const client = counted(clients, key)
    client.requests++
    countTransactionsWith(response, (transactions) => {
      counted(clients, key).requests += Math.min(Math.floor(transactions / transactionsPerRequest), rate)
    })
    const left = Math.max(0, rate - client.requests)
    const seconds = Math.max(0, Math.ceil((client.until - monotonic()) / 1000))
    response.setHeader('RateLimit', `"${identifier}"; r=${left}; t=${seconds}`)
    const policy = `q=${rate}; w=${WINDOW / 1000}; pk=:${client.partition}:`
    response.setHeader('RateLimit-Policy', `"${identifier}"; ${policy}`)
    if (client.requests <= rate) {
      next()
      return
    }
    const message = `more than ${rate} ${identifier} a minute; Retry-After says when to try again`
    next(
      new AnswerError('RATE_LIMITED', message, {
        headers: { Connection: 'close', 'Retry-After': String(seconds) },
      }),
    )
  }
}

function counted(clients: LRUCache<string, Client>, key: string): Client {
  const now = monotonic()
  const known = clients.get(key)
  if (known !== undefined && known.until > now) return known
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 12)
  const partition = Buffer.from(hash).toString('base64')
  const client = { requests: 0, until: now + WINDOW, partition }
  clients.set(key, client)
  return client
}
