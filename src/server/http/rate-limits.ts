import { isIP } from 'node:net'
import type { Request, RequestHandler } from 'express'
import { ipKeyGenerator, MemoryStore, rateLimit } from 'express-rate-limit'
import { countTransactionsWith } from '../../gateway/http/answer-cost.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { Limits } from '../config/limits.js'
import { clientConcurrency } from './client-concurrency.js'

/** More requests of one client than it may make. When to come again is in the headers. */
export class RateLimitedError extends AnswerError {
  override readonly name = 'RateLimitedError'
  readonly status = 429
  readonly code = 'RATE_LIMITED'
}

/** Over its rate: on its connection, the next one would cost as much. */
class OverRateError extends RateLimitedError {
  override readonly headers: Record<string, string> = { Connection: 'close' }
}

const MINUTE = 60_000

/** For whoever watches the host: never limited, or a flood would look like an outage. */
const WATCHED = /^\/(?:health(?:\/|$)|metrics$)/
/** What is handled in a submission's turn, or asks for as much. */
const SUBMISSIONS = /^\/(?:submit|arc-ingest|requestSyncResponse|requestForeignGASPNode)\/?$/i
/** Errors of these carry what overlay clients expect, so they are limited where their routes stand. */
const OVERLAY = /^\/(?:lookup|listTopicManagers|listLookupServiceProviders|getDocumentationFor\w+)\/?$/i

/**
 * How many requests a minute a client may make, reads and submissions counted apart, so that a page with many files does
 * not cost its reader a submission. Over it, the answer is 429 `RATE_LIMITED` with `Retry-After`; every counted answer
 * says in `RateLimit` how much is left. Of the reads of a client, so many are worked on at once.
 *
 * A client is what {@link clientKey} says. A program on this machine that comes without a proxy is not limited.
 *
 * @returns `gateway` for all routes but those of the overlay, `overlay` for those, and `operator` for those below `/admin`,
 * where a token can be guessed at.
 */
export function rateLimits({
  readRate,
  submissionRate,
  transactionsPerRead,
  maxClientReads,
}: Pick<Limits, 'readRate' | 'submissionRate' | 'transactionsPerRead' | 'maxClientReads'>): {
  gateway: RequestHandler
  overlay: RequestHandler
  operator: RequestHandler
} {
  const rate = limiter('reads', readRate, transactionsPerRead)
  const turns = clientConcurrency(maxClientReads, clientKey)
  const reads: RequestHandler = (request, response, next) =>
    rate(request, response, (refusal?: unknown) => {
      if (refusal === undefined) turns(request, response, next)
      else next(refusal)
    })
  const submissions = limiter('submissions', submissionRate)
  return {
    gateway: function limitGateway(request, response, next) {
      const { path } = request
      if (isLocal(request) || WATCHED.test(path) || SUBMISSIONS.test(path) || OVERLAY.test(path)) next()
      else reads(request, response, next)
    },
    overlay: function limitOverlay(request, response, next) {
      const { path } = request
      if (isLocal(request)) next()
      else if (SUBMISSIONS.test(path)) submissions(request, response, next)
      else if (OVERLAY.test(path)) reads(request, response, next)
      else next()
    },
    operator: function limitOperator(request, response, next) {
      if (isLocal(request)) next()
      else submissions(request, response, next)
    },
  }
}

/**
 * @param rate Requests a minute; 0 is no limit.
 * @param transactionsPerRead An answer counts as one more request for each so many transactions in it.
 */
function limiter(
  identifier: string,
  rate: number,
  transactionsPerRead = Number.POSITIVE_INFINITY,
): RequestHandler {
  if (rate === 0) return (_request, _response, next) => next()
  const store = new MemoryStore()
  const limit = rateLimit({
    store,
    windowMs: MINUTE,
    limit: rate,
    identifier,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    keyGenerator: clientKey,
    handler: (_request, _response, next) =>
      next(new OverRateError(`more than ${rate} ${identifier} a minute; Retry-After says when to try again`)),
    // It warns of a header that any stranger can send.
    validate: { xForwardedForHeader: false, forwardedHeader: false },
  })
  return function limitRequests(request, response, next) {
    countTransactionsWith(response, (transactions) => {
      const more = Math.min(Math.floor(transactions / transactionsPerRead), rate)
      for (let counted = 0; counted < more; counted++) void store.increment(clientKey(request))
    })
    return limit(request, response, next)
  }
}

/** The bits of an IPv6 address that one network has for itself (RFC 4291 2.5.1): one host may use all that follow. */
const IPV6_PREFIX = 64

/** All clients whose address cannot be read: text that is no address is no way to be counted as somebody else. */
const UNREADABLE = 'unreadable'

/**
 * Who a request is counted as: an IPv4 address, or the /64 of an IPv6 one, as `TRUST_PROXY` lets Express read it off
 * `X-Forwarded-For`. However a proxy writes an address, with a port, in brackets, with a zone, in capitals, or an IPv4
 * address as an IPv6 one, it is the same client.
 */
export function clientKey({ ip }: Pick<Request, 'ip'>): string {
  return addressKey(ip ?? '')
}

/** The same of an address by itself. */
export function addressKey(written: string): string {
  const address = plainAddress(written.trim())
  return isIP(address) === 0 ? UNREADABLE : ipKeyGenerator(address, IPV6_PREFIX)
}

/** An address without what may stand around it: `a.b.c.d:port`, `[v6]`, `[v6]:port`, `v6%zone`. */
function plainAddress(written: string): string {
  const address = /^\[(.*)\](?::\d+)?$/.exec(written)?.[1] ?? written.replace(/^([\d.]+):\d+$/, '$1')
  return address.replace(/%.*$/, '')
}

const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via']

/** Whether a request comes from this machine, and not through a proxy on it. */
export function isLocal({ socket, headers }: Pick<Request, 'socket' | 'headers'>): boolean {
  const { remoteAddress = '' } = socket
  if (!/^(?:::1$|127\.|::ffff:127\.)/.test(remoteAddress)) return false
  return FORWARDING.every((name) => headers[name] === undefined)
}
