import { isIPv4, isIPv6 } from 'node:net'
import { Semaphore } from 'async-mutex'
import type { ErrorRequestHandler, Request, RequestHandler } from 'express'
import onHeaders from 'on-headers'
import { whileReceiving } from '../../gateway/http/request-body.js'
import { crossOrigin } from '../../gateway/http/security-headers.js'
import type { Limits } from '../config/limits.js'
import { type IndexStatus, incompleteError } from '../store/index-status.js'
import { logPosition } from './log-position.js'
import { rateLimit } from './rate-limit.js'

/** An answer with a BEEF counts as one more read per this many transactions. */
const TRANSACTIONS_PER_READ = 100

const ADMIN = /^\/admin(?:\/|$)/i
/** Routes for monitoring, which are never limited: otherwise a flood would look like an outage. */
const ABOUT_HOST = /^\/(?:health|metrics)(?:\/|$)/
/** Routes that wait for the write lock, or cost as much. The overlay is at the root, and below wallets' prefixes. */
export const SUBMISSIONS = /^(?:\/\w+\/overlay)?\/(?:submit|arc-ingest|requestSyncResponse)\/?$/i
/** A syncing engine sends many requests in parallel, and gives up on refused ones: so these count as reads, and wait. */
const LOOKUPS =
  /^(?:\/\w+\/overlay)?\/(?:lookup|requestForeignGASPNode|request(?:TopicAnchor(?:Tip|Range)|AdmittedList|CompoundMerklePath|RawTransactions)|listTopicManagers|listLookupServiceProviders|getDocumentationFor\w+)\/?$/i

/** Whether a path is the operator's. */
export function isAdmin(path: string): boolean {
  return ADMIN.test(path)
}

/** Sends errors of the overlay protocol and the operator's routes through the first handler, and all others through the second. */
export function errorsByPath(
  ofOverlay: ErrorRequestHandler,
  others: ErrorRequestHandler,
): ErrorRequestHandler {
  return (error, request, response, next) => {
    const { path } = request
    const isOfOverlay = SUBMISSIONS.test(path) || LOOKUPS.test(path) || isAdmin(path)
    return (isOfOverlay ? ofOverlay : others)(error, request, response, next)
  }
}

export interface GatesOptions {
  limits: Pick<Limits, 'readRate' | 'submissionRate' | 'maxClientReads'>
  index: () => IndexStatus
  /** How much of a shared log this gateway knows. */
  position?: (() => number) | undefined
}

/** The checks before a route: each gate is a single handler, as finding a handler takes Express as long as running it. */
export interface Gates {
  /** Before all routes except those below `/admin`. */
  service: RequestHandler
  /** Before content hosts, where every path is a read. */
  hosted: RequestHandler
  /** Limits the routes below `/admin`, where a token could be guessed. No CORS headers: a preflight has no token. */
  operator: RequestHandler
  /** Refuses everything while the index is rebuilt: an incomplete index gives wrong answers. */
  index: RequestHandler
}

/**
 * The gates of a server. They limit how many requests a minute a client may send; reads and submissions count separately, so that a
 * page with many files does not cost its reader a submission. Over the limit, the answer is 429 `RATE_LIMITED` with `Retry-After`;
 * every counted answer has the remaining number in `RateLimit`. They also limit a client's parallel reads, and refuse requests while
 * the index is rebuilt.
 *
 * A client is what {@link clientKey} returns. A program on this machine that connects without a proxy is not limited.
 */
export function createGates({ limits, index, position }: GatesOptions): Gates {
  const { readRate, submissionRate, maxClientReads } = limits
  const rate = rateLimit({
    ...{ identifier: 'reads', rate: readRate, clientOf: clientKey },
    transactionsPerRequest: TRANSACTIONS_PER_READ,
  })
  const concurrency = clientConcurrency(maxClientReads, clientKey)
  const reads = unlessLocal(inOrder(rate, concurrency))
  const submissions = unlessLocal(
    rateLimit({ identifier: 'submissions', rate: submissionRate, clientOf: clientKey }),
  )
  const cors = crossOrigin()
  const wait = position && logPosition(position)
  const unlessRebuilding: RequestHandler = (request, response, next) => {
    const error = incompleteError(index())
    if (error !== undefined || wait === undefined) next(error)
    else wait(request, response, next)
  }
  const limitedReads = inOrder(reads, unlessRebuilding)
  const limitedSubmissions = inOrder(submissions, unlessRebuilding)
  return {
    index: unlessRebuilding,
    operator: (request, response, next) => submissions(request, response, next),
    service(request, response, next) {
      const { path } = request
      if (isAdmin(path)) {
        next()
        return
      }
      cors(request, response, () => {
        if (ABOUT_HOST.test(path)) next()
        else if (SUBMISSIONS.test(path)) limitedSubmissions(request, response, next)
        else limitedReads(request, response, next)
      })
    },
    hosted: (request, response, next) => cors(request, response, () => limitedReads(request, response, next)),
  }
}

/** Combines two gates: the second runs if the first does not refuse. */
function inOrder(first: RequestHandler, second: RequestHandler): RequestHandler {
  return (request, response, next) =>
    first(request, response, (refusal?: unknown) => {
      if (refusal === undefined) second(request, response, next)
      else next(refusal)
    })
}

/** A gate that lets programs on this machine pass. */
function unlessLocal(gate: RequestHandler): RequestHandler {
  return (request, response, next) => {
    if (isLocal(request)) next()
    else gate(request, response, next)
  }
}

/**
 * Limits how many requests of one client are worked on at a time; its others wait, first come, first served. A client that sends
 * many requests on many connections delays only itself: others wait for at most this many of its requests.
 *
 * A request is worked on until the head of its response is sent, except while its body arrives: receiving that, and sending the
 * response's body, take as long as the client does.
 */
export function clientConcurrency(most: number, clientOf: (request: Request) => string): RequestHandler {
  const clients = new Map<string, Semaphore>()
  return (request, response, next) => {
    const client = clientOf(request)
    let leave = (): void => {}
    const enter = async (): Promise<void> => {
      const semaphore = clients.get(client) ?? new Semaphore(most)
      clients.set(client, semaphore)
      const [, release] = await semaphore.acquire()
      leave = () => {
        release()
        if (semaphore.getValue() === most && clients.get(client) === semaphore) clients.delete(client)
      }
      if (response.destroyed) leave()
    }
    onHeaders(response, () => leave())
    response.once('close', () => leave())
    whileReceiving(response, { leave: () => leave(), enter })
    void enter().then(() => {
      if (!response.destroyed) next()
    })
  }
}

/** The key of all clients with an unparsable address: such an address must not make anyone a separate client. */
const UNREADABLE = 'unreadable'

/**
 * The client that a request counts for: an IPv4 address, or the /64 of an IPv6 one, which Express takes from `X-Forwarded-For` as
 * far as `TRUST_PROXY` allows. The key does not depend on how a proxy writes the address: with a port, in brackets, with a zone, in
 * capitals, or an IPv4 address as an IPv6 one.
 */
export function clientKey({ ip }: Pick<Request, 'ip'>): string {
  return addressKey(ip ?? '')
}

export function addressKey(written: string): string {
  const address = plainAddress(written.trim())
  // IPv4 first: compiling the pattern for IPv6 takes Node 14 ms, which would delay the first request.
  if (isIPv4(address)) return address
  return isIPv6(address) ? networkOf(address) : UNREADABLE
}

/** The /64 of an IPv6 address (RFC 4291 2.5.1), all of which one host may use, or the IPv4 address that it maps. */
function networkOf(address: string): string {
  // URL normalizes the forms of an address.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [left, right] = [head, tail ?? ''].map((part) => part.split(':').filter((group) => group !== ''))
  const groups = [...(left ?? []), ...(right ?? [])]
  groups.splice(left?.length ?? 0, 0, ...new Array(8 - groups.length).fill('0'))
  const mapped = /^(?:0:){5}ffff:(\w+):(\w+)$/.exec(groups.join(':'))
  if (mapped === null)
    return `${new URL(`http://[${groups.slice(0, 4).join(':')}::]`).hostname.slice(1, -1)}/64`
  const bytes = mapped.slice(1).flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
  return bytes.join('.')
}

/** The address in `a.b.c.d:port`, `[v6]`, `[v6]:port` or `v6%zone`. */
function plainAddress(written: string): string {
  const address = /^\[(.*)\](?::\d+)?$/.exec(written)?.[1] ?? written.replace(/^([\d.]+):\d+$/, '$1')
  return address.replace(/%.*$/, '')
}

const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via']

/** Whether a request comes from this machine, without a proxy on it. */
export function isLocal({ socket, headers }: Pick<Request, 'socket' | 'headers'>): boolean {
  const { remoteAddress = '' } = socket
  if (!/^(?:::1$|127\.|::ffff:127\.)/.test(remoteAddress)) return false
  return FORWARDING.every((name) => headers[name] === undefined)
}
