import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Limits } from '../config/limits.js'
import {
  type Refusal,
  refusalOf,
  refusalOfHead,
  sendRefusal,
  UNMET_EXPECTATION,
  writeRefusal,
} from './http-refusal.js'
import { InFlightRequests } from './in-flight-requests.js'
import { addressKey } from './rate-limits.js'

/**
 * How many requests are under way on one connection, of a client that does not wait for answers. Those come in the order of the
 * requests, so that all but one of them wait in memory; and one packet may hold hundreds of requests.
 */
const MAX_PIPELINED = 64
/** How often connections are looked at for what takes too long to come, in milliseconds, at the longest. */
const CHECKING = 30_000

export interface HttpServer extends Server {
  /**
   * Takes no more connections, and ends those that there are: with the answer that is due, and at once where none is.
   * Node leaves those open whose answer is under way, and those on which nobody has said a word yet, as browsers and
   * proxies open them in advance. Answers whose head is not out yet say `Connection: close`, so that whoever asks next
   * does so on another connection.
   */
  finish(): Promise<void>
}

/**
 * An HTTP server that strangers may connect to: what is slow, silent or no HTTP costs it no more than the limits say, and
 * is answered as any other error where there is still somebody to answer.
 *
 * - Headers and requests that take too long to come are answered 408, and the connection ends.
 * - A connection on which nothing moves ends, where it is the other side's turn: to send on, or to read. While an answer
 *   is worked on here, nothing needs to move.
 * - One address has so many connections and no more, so that it leaves some for others; and one connection so many requests
 *   under way. It ends with one more.
 * - What Node would refuse without a body, or without our headers, is refused as everything else is.
 *
 * @param watched Puts a watch before whatever answers requests, refusals of their heads among it.
 */
export function openHttpServer(
  listener: RequestListener,
  limits: Limits,
  watched: (answering: RequestListener) => RequestListener = (answering) => answering,
): HttpServer {
  const { headersTimeout, requestTimeout, keepAliveTimeout, stallTimeout } = limits
  const exchanges = new InFlightRequests()
  const connections = new AddressConnections(limits)
  const server = createServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout,
    requestTimeout,
    keepAliveTimeout,
    connectionsCheckingInterval: Math.min(CHECKING, headersTimeout, requestTimeout),
    // Said here, with a body.
    requireHostHeader: false,
  })
  server.maxConnections = limits.maxConnections
  const answer = watched((request, response) => {
    const refusal = refusalOfHead(request, limits)
    if (refusal === undefined) listener(request, response)
    else sendRefusal(response, refusal)
  })
  const refuseExpectation = watched((_request, response) => sendRefusal(response, UNMET_EXPECTATION))
  const endAfter = (response: ServerResponse): void => {
    response.once('close', () => server.closeIdleConnections())
  }
  const begun =
    (answering: RequestListener): RequestListener =>
    (request, response) => {
      if (request.socket.destroyed) return
      if (exchanges.add(request, response) > MAX_PIPELINED) {
        connections.end(request.socket)
        return
      }
      if (!server.listening) {
        response.shouldKeepAlive = false
        endAfter(response)
      }
      answering(request, response)
    }
  server.on('request', begun(answer))
  server.on('checkExpectation', begun(refuseExpectation))
  const refused = new WeakSet<Duplex>()
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    // While it ends, what still comes cannot be read either.
    if (refused.has(socket)) return
    refused.add(socket)
    const bodiless = error.rawPacket?.subarray(0, 5).toString('latin1') === 'HEAD '
    refuse(socket, { exchanges, refusal: refusalOf(error), bodiless })
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    if (!connections.admit(socket)) {
      socket.destroy()
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.setTimeout(stallTimeout, (socket) => {
    if (exchanges.isWorkedOn(socket)) socket.setTimeout(stallTimeout)
    else socket.destroy()
  })
  return Object.assign(server, {
    async finish() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) {
        const due = exchanges.on(socket)
        for (const { response } of due) endAfter(response)
        // Not of those before it: Node ends the connection behind the first that says so.
        const last = due.at(-1)?.response
        if (last?.headersSent === false) last.shouldKeepAlive = false
        if (socket.bytesRead === 0) socket.destroy()
      }
      await closed
    },
  })
}

/** How long an address is not heard that sent what it may not, in milliseconds. */
const PENALTY = 10_000

/** The connections of each address. Behind a proxy they are all the proxy's, and not counted. */
class AddressConnections {
  private readonly open = new Map<string, Set<Socket>>()
  private readonly unheard = new Set<string>()
  private readonly most: number

  constructor({ maxClientConnections, trustedProxies }: Limits) {
    this.most =
      maxClientConnections === 0 || trustedProxies > 0 ? Number.POSITIVE_INFINITY : maxClientConnections
  }

  /** Counts a connection until it closes; false where its address has as many as it may, or is not heard. */
  admit(socket: Socket): boolean {
    const address = addressKey(socket.remoteAddress ?? '')
    const open = this.open.get(address) ?? new Set()
    if (open.size >= this.most || this.unheard.has(address)) return false
    this.open.set(address, open.add(socket))
    socket.once('close', () => {
      open.delete(socket)
      if (open.size === 0) this.open.delete(address)
    })
    return true
  }

  /**
   * Ends a connection, and with it all others of its address, which is not heard for a while: where hundreds of them send the
   * same, to read what is there of each takes seconds.
   */
  end(socket: Socket): void {
    const address = addressKey(socket.remoteAddress ?? '')
    socket.destroy()
    if (this.most === Number.POSITIVE_INFINITY) return
    this.unheard.add(address)
    setTimeout(() => this.unheard.delete(address), PENALTY).unref()
    for (const other of this.open.get(address) ?? []) other.destroy()
  }
}

/** In its turn behind the answers that are due on the connection, and never into one that has begun. */
function refuse(
  socket: Duplex,
  told: { exchanges: InFlightRequests; refusal: Refusal | undefined; bodiless: boolean },
): void {
  const { exchanges, refusal, bodiless } = told
  const due = exchanges.on(socket).find(({ request }) => request.complete)
  if (refusal === undefined || !socket.writable) socket.destroy()
  else if (due !== undefined) due.response.once('close', () => refuse(socket, told))
  else if (exchanges.on(socket).some(({ response }) => response.headersSent)) socket.destroy()
  else writeRefusal(socket, refusal, { bodiless })
}
