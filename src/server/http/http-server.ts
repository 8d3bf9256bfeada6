import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import type { Express, Request, Response } from 'express'
import type { Logger } from 'pino'
import type { ErrorCode } from '../../gateway/http/errors.js'
import { discardBody } from '../../gateway/http/request-body.js'
import { StartError } from '../config/errors.js'
import type { Limits } from '../config/limits.js'
import type { EndedRequest } from '../telemetry/request-metrics.js'
import { addressKey } from './gates.js'
import type { App } from './hot-path.js'
import {
  type Refusal,
  refusalOf,
  refusalOfHead,
  sendRefusal,
  UNMET_EXPECTATION,
  writeRefusal,
} from './http-refusal.js'

/**
 * The most requests in flight on one connection, of a client that does not wait for responses. Those are sent in the order of
 * the requests, so all but one of them wait in memory; and one packet may hold hundreds of requests.
 */
const MAX_PIPELINED = 64
/** How long requests in flight may take when a server stops, in milliseconds. */
const GRACE = 10_000
/** How often at least Node checks connections for its timeouts, in milliseconds. */
const CHECKING = 30_000

export interface HttpServerOptions {
  app: App
  limits: Limits
  /** Called once for each request, whether its response was sent or the client left. */
  onEnd: (ended: EndedRequest) => void
  /** Logs a line for each request; by default, only errors are logged, by the routes. */
  log?: Logger
}

export interface HttpServer extends Server {
  /**
   * Accepts no more connections, and closes the open ones: after the response that is due, or at once if none is. Node
   * itself would leave open those with a request in flight, and those without any request yet, which browsers and proxies
   * open in advance. Responses whose head is not sent yet say `Connection: close`, so that the client's next request uses
   * another connection. Those that are still open after {@link GRACE} end.
   */
  finish(): Promise<void>
}

/**
 * An HTTP server for the public: clients that are slow, idle or do not speak HTTP cost it no more than the limits say, and
 * get an error response like any other as long as there is somebody to read it.
 *
 * - Each request has an id, in `X-Request-Id` of its response and in its log lines.
 * - Headers and requests that take too long to arrive are answered 408, and the connection ends.
 * - A stalled connection ends, if the client is the one to send or to read. While the server works on a response, nothing
 *   needs to move.
 * - An address has a limited number of connections, and a connection a limited number of requests in flight. One more ends
 *   the connection.
 * - A response that ends its connection is not lost to a client that still sends.
 * - What Node would refuse without a body, or without our headers, is refused like everything else.
 */
export function openHttpServer(options: HttpServerOptions): HttpServer {
  const { app, limits, onEnd, log } = options
  const { headersTimeout, requestTimeout, keepAliveTimeout, stallTimeout } = limits
  const inFlight = new InFlightRequests()
  const connections = new AddressConnections(limits)
  const server = createServer({
    ...classesOf(app.express),
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout,
    requestTimeout,
    keepAliveTimeout,
    connectionsCheckingInterval: Math.min(CHECKING, headersTimeout, requestTimeout),
    // Refused below, with a body.
    requireHostHeader: false,
  })
  server.maxConnections = limits.maxConnections
  const endAfter = (response: ServerResponse): void => {
    response.once('close', () => server.closeIdleConnections())
  }
  /** Whether to answer the request. One pass, as it precedes every response. */
  const begin = (request: IncomingMessage, response: ServerResponse): boolean => {
    if (request.socket.destroyed) return false
    if (inFlight.add(response) > MAX_PIPELINED) {
      connections.end(request.socket)
      return false
    }
    if (!server.listening) {
      response.shouldKeepAlive = false
      endAfter(response)
    }
    const started = performance.now()
    const requestId = requestIdOf(request)
    response.setHeader('X-Request-Id', requestId)
    response.on('close', () => {
      const ended = endedRequest(request, response, started)
      onEnd(ended)
      log?.info({ requestId, ...logFields(ended) }, 'answered')
    })
    return true
  }
  server.on('request', (request, response) => {
    if (!begin(request, response)) return
    const refusal = refusalOfHead(request, limits)
    if (refusal === undefined) app(request, response)
    else sendRefusal(response, refusal)
  })
  server.on('checkExpectation', (request, response) => {
    if (begin(request, response)) sendRefusal(response, UNMET_EXPECTATION)
  })
  const refused = new WeakSet<Duplex>()
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    // Until the connection has ended, whatever follows cannot be parsed either.
    if (refused.has(socket)) return
    refused.add(socket)
    const bodiless = error.rawPacket?.subarray(0, 5).toString('latin1') === 'HEAD '
    refuse(socket, { inFlight, refusal: refusalOf(error), bodiless })
  })
  server.on('connection', (socket) => {
    if (!connections.admit(socket)) {
      socket.destroy()
      return
    }
    inFlight.open(socket)
    endAfterBodies(socket, inFlight)
  })
  server.setTimeout(stallTimeout, (socket) => {
    if (inFlight.isWorkedOn(socket)) socket.setTimeout(stallTimeout)
    else socket.destroy()
  })
  return Object.assign(server, {
    async finish() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of inFlight.sockets()) {
        const due = inFlight.on(socket)
        for (const response of due) endAfter(response)
        // Not on those before it: Node ends the connection after the first that says so.
        const last = due.at(-1)
        if (last?.headersSent === false) last.shouldKeepAlive = false
        if (socket.bytesRead === 0) socket.destroy()
      }
      const deadline = setTimeout(() => server.closeAllConnections(), GRACE)
      await closed
      clearTimeout(deadline)
    },
  })
}

/** @throws StartError if the address cannot be listened on. */
export async function listen(server: Server, { port, host }: { port: number; host: string }): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new StartError(`cannot listen on ${host}:${port}: ${cause.message}`, { cause })),
    )
    server.listen({ port, host }, resolve)
  })
}

/**
 * Node's classes with the prototypes that an app gives its requests and responses. Express sets those on each object, which
 * makes it slow to use: on Node 20 that is three quarters of the time of a small response. Made of these classes, an object
 * has its prototype from the start.
 */
function classesOf(app: Express) {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request)
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response)
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}

/** An id that a proxy assigned: short, and of characters that are special nowhere. */
const SAFE_ID = /^[\w.-]{1,64}$/

/** How all ids of this process begin: the rest is counted, as a random one takes as long as several headers. */
const BEGINNING = randomUUID().slice(0, -12)
let issued = 0

function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id']
  if (typeof given === 'string' && SAFE_ID.test(given)) return given
  return BEGINNING + (++issued).toString(16).padStart(12, '0')
}

function endedRequest(request: IncomingMessage, response: ServerResponse, started: number): EndedRequest {
  // Express adds its own properties to both, unless the request was refused before.
  const { locals } = response as Response
  return {
    request: request as Request,
    status: response.statusCode,
    complete: response.writableFinished,
    code: locals?.code as ErrorCode | undefined,
    host: locals?.host as string | undefined,
    started,
  }
}

function logFields({
  request,
  status,
  code,
  host,
  complete,
  started,
}: EndedRequest): Record<string, unknown> {
  const milliseconds = Math.round(performance.now() - started)
  const { method, originalUrl, url } = request
  const target = { ...(host !== undefined && { host }), method, url: originalUrl ?? url }
  return { ...target, status, code, milliseconds, ...(!complete && { aborted: true }) }
}

/** The open connections, each with the responses that are due on it: several, if a client does not wait for them. */
class InFlightRequests {
  private readonly responses = new Map<Duplex, ServerResponse[]>()

  open(socket: Socket): void {
    this.responses.set(socket, [])
    socket.once('close', () => this.responses.delete(socket))
  }

  sockets(): Iterable<Socket> {
    return this.responses.keys() as Iterable<Socket>
  }

  /** @returns How many requests are in flight on the connection now. */
  add(response: ServerResponse): number {
    const responses = this.responses.get(response.req.socket) ?? []
    // Removing them here costs nearly nothing, where a listener for each would.
    while (responses[0]?.closed) responses.shift()
    return responses.push(response)
  }

  /** In the order of the requests, which is that of the responses. */
  on(socket: Duplex): ServerResponse[] {
    return this.responses.get(socket)?.filter(({ closed }) => !closed) ?? []
  }

  /** Whether the server is to move next: a request has arrived completely, and nothing of its response waits to be read. */
  isWorkedOn(socket: Duplex): boolean {
    const [first] = this.on(socket)
    return first?.req.complete === true && socket.writableLength === 0
  }
}

/** How long connections of an offending address are refused, in milliseconds. */
const PENALTY = 10_000

/** The connections of each address. Behind a proxy all are the proxy's, and not counted. */
class AddressConnections {
  private readonly open = new Map<string, Set<Socket>>()
  private readonly banned = new Set<string>()
  private readonly most: number

  constructor({ maxClientConnections, trustedProxies }: Limits) {
    this.most =
      maxClientConnections === 0 || trustedProxies > 0 ? Number.POSITIVE_INFINITY : maxClientConnections
  }

  /** Counts a connection until it closes; false if its address is banned or has as many as it may. */
  admit(socket: Socket): boolean {
    const address = addressKey(socket.remoteAddress ?? '')
    const open = this.open.get(address) ?? new Set()
    if (open.size >= this.most || this.banned.has(address)) return false
    this.open.set(address, open.add(socket))
    socket.once('close', () => {
      open.delete(socket)
      if (open.size === 0) this.open.delete(address)
    })
    return true
  }

  /**
   * Ends a connection with all others of its address, and bans the address for a while: if hundreds of connections send the
   * same, parsing what has arrived on each takes seconds.
   */
  end(socket: Socket): void {
    const address = addressKey(socket.remoteAddress ?? '')
    socket.destroy()
    if (this.most === Number.POSITIVE_INFINITY) return
    this.banned.add(address)
    setTimeout(() => this.banned.delete(address), PENALTY).unref()
    for (const other of this.open.get(address) ?? []) other.destroy()
  }
}

/**
 * Has a connection that is to end with a response end only after the body of its request has come, or the client had time to
 * read the response: closed before, it would be reset, and the response lost (RFC 9112 9.6).
 */
function endAfterBodies(socket: Socket, inFlight: InFlightRequests): void {
  const end = socket.destroySoon.bind(socket)
  // What Node calls after a response that ends the connection.
  socket.destroySoon = () => {
    const unfinished = inFlight.on(socket).find(({ req }) => !req.complete)?.req
    if (unfinished === undefined) {
      end()
      return
    }
    discardBody(unfinished)
    unfinished.once('end', end)
    socket.end()
  }
}

/** Refuses after the responses that are due on the connection, and never within one that has begun. */
function refuse(
  socket: Duplex,
  options: { inFlight: InFlightRequests; refusal: Refusal | undefined; bodiless: boolean },
): void {
  const { inFlight, refusal, bodiless } = options
  const due = inFlight.on(socket)
  const next = due.find(({ req }) => req.complete)
  if (refusal === undefined || !socket.writable) socket.destroy()
  else if (next !== undefined) next.once('close', () => refuse(socket, options))
  else if (due.some(({ headersSent }) => headersSent)) socket.destroy()
  else writeRefusal(socket, refusal, { bodiless })
}
