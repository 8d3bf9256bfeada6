import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Express, Request, Response } from 'express'
import type { Logger } from 'pino'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { ErrorCode } from '../../gateway/http/errors.js'
import { reasonWithAdvice, StartError } from '../config/errors.js'
import type { Limits } from '../config/limits.js'
import type { EndedRequest } from '../telemetry/request-metrics.js'
import { Connection } from './connection.js'
import { addressKey, clientKey } from './gates.js'
import type { App } from './hot-path.js'
import { type Refusal, sendRefusal } from './http-refusal.js'
import { Transfers } from './transfers.js'

/** How long requests in flight may take when the server stops, in milliseconds. */
const GRACE = 10_000
/** The longest interval in which Node checks connections for timeouts, in milliseconds. */
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
   * Accepts no more connections, and closes the open ones, after the response that is due, if any. Node by itself would leave open
   * connections with a request in flight, and those without a complete head: browsers and proxies open some in advance. Responses
   * whose head has not been sent say `Connection: close`, so that the client's next request uses another connection. Connections
   * still open after {@link GRACE} are ended.
   */
  finish(): Promise<void>
  /** Requests a path from itself, over a connection like a client's. The request is neither counted nor logged. */
  askItself(path: string): void
}

/**
 * An HTTP server for the public: clients that are slow, idle or do not speak HTTP cost it no more than the limits, and get an error
 * response like any other as long as somebody reads it.
 *
 * - Each request has an id, in `X-Request-Id` of its response and in its log lines.
 * - Headers and requests that take too long to arrive are answered 408, and the connection ends.
 * - A stalled connection ends if it is the client's turn to send or read. While the server works on a response, nothing needs to
 *   move.
 * - An address has a limited number of connections, and a connection has one request at a time ({@link Connection}).
 * - Responses that wait to be read are counted, with the bodies that clients send.
 * - A response that ends its connection reaches a client that is still sending.
 * - Requests that Node would refuse without a body, or without our headers, are refused like all others.
 */
export function openHttpServer(options: HttpServerOptions): HttpServer {
  const { app, limits, onEnd, log } = options
  const { headersTimeout, requestTimeout, keepAliveTimeout, stallTimeout } = limits
  const connections = new Map<Socket, Connection>()
  const addresses = new AddressConnections(limits)
  /** The port of the connection with which it asks itself. */
  let ownPort: number | undefined
  const { transfers = new Transfers({ ...limits, clientOf: clientKey }) } = app
  const server = createServer({
    ...classesOf(app.express, connections),
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout,
    requestTimeout,
    keepAliveTimeout,
    connectionsCheckingInterval: Math.min(CHECKING, headersTimeout, requestTimeout),
    // Refused below, with a body.
    requireHostHeader: false,
  })
  const endAfter = (response: ServerResponse): void => {
    response.once('close', () => server.closeIdleConnections())
  }
  /** Prepares a request; returns whether to answer it. A single pass, as it precedes every response. */
  const begin = (request: IncomingMessage, response: ServerResponse): boolean => {
    const connection = connections.get(request.socket)
    if (connection === undefined || request.socket.destroyed) return false
    connection.begin(request, response)
    if (!server.listening) {
      response.shouldKeepAlive = false
      endAfter(response)
    }
    const started = monotonic()
    const requestId = requestIdOf(request)
    const isOwn = ownPort !== undefined && request.socket.remotePort === ownPort
    response.setHeader('X-Request-Id', requestId)
    response.on('close', () => {
      connection.ended()
      if (isOwn) return
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
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    const bodiless = error.rawPacket?.subarray(0, 5).toString('latin1') === 'HEAD '
    connections.get(socket as Socket)?.refuse(refusalOf(error), { bodiless })
  })
  server.on('connection', (socket) => {
    const hasRoom =
      addresses.admit(socket) &&
      (connections.size < limits.maxConnections || addresses.makeRoom(socket, connections))
    if (!hasRoom) {
      socket.destroy()
      return
    }
    connections.set(socket, new Connection(socket, transfers))
    socket.once('close', () => connections.delete(socket))
  })
  server.setTimeout(stallTimeout, (socket) => {
    if (connections.get(socket)?.isWorkedOn === true) socket.setTimeout(stallTimeout)
    else socket.destroy()
  })
  return Object.assign(server, {
    async finish() {
      const closed = once(server, 'close')
      server.close()
      for (const [socket, { due }] of connections) {
        if (due !== undefined) endAfter(due)
        // A refusal that ends its connection has a moment to be read.
        else if (!socket.writableEnded) socket.destroy()
        if (due?.headersSent === false) due.shouldKeepAlive = false
      }
      const deadline = setTimeout(() => server.closeAllConnections(), GRACE)
      await closed
      clearTimeout(deadline)
    },
    askItself(path: string) {
      const { address: host, port } = server.address() as AddressInfo
      const socket = connect({ port, host: LOOPBACK[host] ?? host })
      socket.once('connect', () => {
        ownPort = socket.localPort
        socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
      })
      socket.once('close', () => {
        ownPort = undefined
      })
      // The first bytes show that it works; the rest may be long.
      socket.once('data', () => socket.destroy())
      // The machine may forbid the connection.
      socket.on('error', () => {})
    },
  })
}

/**
 * The refusal of a request based on its head; undefined if it is fine. An overlong path has its own status (414); for the complete
 * head there is Node's limit (431).
 */
function refusalOfHead(
  { url = '', headers, httpVersionMinor }: IncomingMessage,
  { maxPathBytes }: Pick<Limits, 'maxPathBytes'>,
): Refusal | undefined {
  if (url.length > maxPathBytes)
    return { status: 414, code: 'TOO_LARGE', message: `a path may have at most ${maxPathBytes} bytes` }
  // RFC 9112 3.2.
  if (headers.host === undefined && httpVersionMinor > 0)
    return { status: 400, code: 'BAD_BODY', message: 'the request has no Host header' }
  return undefined
}

/** RFC 9110 10.1.1. Node itself handles `100-continue`, the only defined expectation. */
const UNMET_EXPECTATION: Refusal = {
  status: 417,
  code: 'BAD_BODY',
  message: 'the only supported Expect value is 100-continue',
}

/** The refusal for an error of Node's parser or timers; undefined if the connection is broken. */
function refusalOf({ code = '' }: NodeJS.ErrnoException): Refusal | undefined {
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, code: 'TOO_LARGE', message: 'the path and headers exceed the limit' }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return { status: 413, code: 'TOO_LARGE', message: 'the chunk extensions exceed the limit' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, code: 'BAD_BODY', message: 'the request took too long to arrive' }
  if (code.startsWith('HPE_')) return { status: 400, code: 'BAD_BODY', message: 'the request is malformed' }
  return undefined
}

/** The address at which a server that listens on all addresses is reached. */
const LOOPBACK: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** @throws StartError if the address cannot be listened on. */
export async function listen(server: Server, { port, host }: { port: number; host: string }): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new StartError(`cannot listen on ${host}:${port}: ${reasonWithAdvice(cause)}`, { cause })),
    )
    server.listen({ port, host }, resolve)
  })
}

/**
 * Node's classes with the prototypes that an app gives its requests and responses. Express sets those on each object, which makes it
 * slow to use: on Node 20 that is three quarters of the time of a small response. Instances of these classes have their prototype
 * from the start.
 */
function classesOf(app: Express, connections: Map<Socket, Connection>) {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {
    override write(...given: unknown[]): boolean {
      const hasRoom = super.write(...(given as Parameters<ServerResponse['write']>))
      if (this.socket !== null) connections.get(this.socket)?.count()
      return hasRoom
    }

    override end(...given: unknown[]): this {
      super.end(...(given as Parameters<ServerResponse['end']>))
      if (this.socket !== null) connections.get(this.socket)?.count()
      return this
    }
  }
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request)
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response)
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}

/** An id assigned by a proxy: short, and without special characters. */
const SAFE_ID = /^[\w.-]{1,64}$/

/** The common beginning of this process's ids; a counter follows, as a random id takes as long as several headers. */
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

function logFields(options: EndedRequest): Record<string, unknown> {
  const { request, status, code, host, complete, started } = options
  const milliseconds = Math.round(monotonic() - started)
  const { method, originalUrl, url } = request
  const target = { ...(host !== undefined && { host }), method, url: originalUrl ?? url }
  return { ...target, status, code, milliseconds, ...(!complete && { aborted: true }) }
}

/** The connections of each address. Behind a proxy, all are the proxy's, and are not counted. */
class AddressConnections {
  private readonly open = new Map<string, Set<Socket>>()
  private readonly most: number

  constructor({ maxClientConnections, trustedProxies }: Limits) {
    this.most =
      maxClientConnections === 0 || trustedProxies > 0 ? Number.POSITIVE_INFINITY : maxClientConnections
  }

  /** Counts a connection until it closes; false if its address is at its limit. */
  admit(socket: Socket): boolean {
    const address = addressKey(socket.remoteAddress ?? '')
    const open = this.open.get(address) ?? new Set()
    if (open.size >= this.most) return false
    this.open.set(address, open.add(socket))
    socket.once('close', () => {
      open.delete(socket)
      if (open.size === 0) this.open.delete(address)
    })
    return true
  }

  /**
   * Makes room for a newcomer by ending the oldest connection of the address with the most: one without a request, or else one that
   * waits for its client. So a few addresses cannot keep others out. False if there is none, or no address has more than the
   * newcomer's.
   */
  makeRoom(newcomer: Socket, connections: ReadonlyMap<Socket, Connection>): boolean {
    const own = this.open.get(addressKey(newcomer.remoteAddress ?? '')) ?? new Set()
    let most = own
    for (const open of this.open.values()) if (open.size > most.size) most = open
    if (most === own) return false
    const sockets = [...most].filter((socket) => !socket.destroyed)
    const leaving =
      sockets.find((socket) => connections.get(socket)?.due === undefined) ??
      sockets.find((socket) => connections.get(socket)?.isWorkedOn === false)
    leaving?.destroy()
    return leaving !== undefined
  }
}
