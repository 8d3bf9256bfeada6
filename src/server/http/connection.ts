import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Request, Response } from 'express'
import { discardBody } from '../../gateway/http/request-body.js'
import { heldFor } from '../../gateway/http/send-body.js'
import { SUBMISSIONS } from './gates.js'
import { type Refusal, writeRefusal } from './http-refusal.js'
import type { Transfer, Transfers } from './transfers.js'

/** The end of a request's head, and of a chunked body (RFC 9112 2.1, 7.1). */
const END = Buffer.from('\r\n\r\n')
const LINE_END = END.subarray(2)
/** The longest line with a chunk size that is awaited, in bytes: Node's parser refuses longer ones. */
const LONGEST_LINE = 32 * 1024
const NOTHING: Buffer = Buffer.alloc(0)
/** How many chunks of a body are parsed before yielding: a tiny one takes as long as one of this many bytes. */
const CHUNKS_AT_ONCE = 64
const CHUNK_BYTES = 4096
/** The bytes that a connection may hold without being counted: most answers are shorter. */
const UNCOUNTED = 16 * 1024

/**
 * A connection of an HTTP server that handles one request at a time: the next one is parsed when the previous answer has left. So the
 * answers of a client that pipelines requests are in order, and take no more memory than those of one that waits.
 *
 * Node would parse everything that has come, hundreds of requests at once. This class passes bytes to Node's parser only up to the
 * end of a request, and leaves the rest in the socket.
 */
export class Connection {
  private request: IncomingMessage | undefined
  private response: ServerResponse | undefined
  private unparsed = NOTHING
  /** The bytes of the body, or of its current chunk, that are still to come. */
  private bodyLeft = 0
  /** Whether another chunk of the body is still to come. */
  private isChunked = false
  private chunksLeft = CHUNKS_AT_ONCE
  private isTurnDue = false
  private isParsing = false
  private isRefused = false
  private readonly parse: (bytes: Buffer) => void
  private readonly leave: () => void
  /** The memory counted for this connection. */
  private transfer: Transfer | undefined

  constructor(
    private readonly socket: Socket,
    private readonly transfers: Transfers,
  ) {
    // The listeners of Node's server.
    const [parse] = socket.listeners('data')
    this.leave = socket.listeners('end').at(-1) as () => void
    if (parse === undefined) throw new Error('this version of Node parses requests elsewhere')
    this.parse = parse as (bytes: Buffer) => void
    socket.off('data', this.parse)
    socket.on('readable', this.proceed)
    socket.off('end', this.leave)
    socket.once('end', this.otherSideEnded)
    // Node calls this to resume reading a body.
    socket.resume = () => {
      if (this.unparsed.length + socket.readableLength > 0) process.nextTick(this.proceed)
      return socket
    }
    this.endAfterBodies()
  }

  get due(): ServerResponse | undefined {
    return this.response?.closed === false ? this.response : undefined
  }

  /** Whether it is the server's turn: a request has arrived completely, and no part of its response waits to be read. */
  get isWorkedOn(): boolean {
    return this.due !== undefined && this.request?.complete === true && this.socket.writableLength === 0
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    this.request = request
    this.response = response
    this.bodyLeft = Number(request.headers['content-length'] ?? 0)
    this.isChunked = request.headers['transfer-encoding'] !== undefined
  }

  /** Call when a response has left, or its client has. Continues after other connections had their turn. */
  ended(): void {
    this.transfer?.end()
    this.transfer = undefined
    if (this.unparsed.length + this.socket.readableLength > 0) setImmediate(this.proceed)
  }

  /** Counts what the connection holds in memory until its client reads. Over the total limit, some connection ends. */
  count(): void {
    const { socket, request, response, unparsed } = this
    if (request === undefined || response === undefined) return
    const bytes =
      socket.writableLength + socket.readableLength + unparsed.length + heldFor(response as Response)
    if (this.transfer === undefined) {
      if (bytes < UNCOUNTED) return
      this.transfer = this.transfers.begin(request as Request)
      this.transfer.signal.addEventListener('abort', () => socket.destroy())
    }
    this.transfer.hold(bytes - this.transfer.bytes)
  }

  /** Refuses a request that cannot be parsed or does not arrive, unless a response has begun. */
  refuse(refusal: Refusal | undefined, options: { bodiless: boolean }): void {
    // Once refused, everything until the end of the connection is unparsable too.
    if (this.isRefused) return
    this.isRefused = true
    const { socket, due } = this
    if (refusal === undefined || !socket.writable || due?.headersSent === true) socket.destroy()
    else writeRefusal(socket, refusal, options)
  }

  private readonly proceed = (): void => {
    if (this.isParsing || this.chunksLeft <= 0) return
    this.isParsing = true
    const { socket } = this
    while (this.mayProceed && this.chunksLeft > 0) {
      if (this.isOver) this.unparsed = NOTHING
      const part = this.nextPart()
      if (part !== undefined) this.parse(part)
      else if (!this.readMore()) break
    }
    this.isParsing = false
    if (this.chunksLeft < CHUNKS_AT_ONCE) this.nextTurn()
    // Only reading shows that the client has left.
    if (socket.readableLength === 0) this.readMore()
    else if (this.request?.complete === true) this.count()
  }

  private nextTurn(): void {
    if (this.isTurnDue) return
    this.isTurnDue = true
    setImmediate(() => {
      this.isTurnDue = false
      this.chunksLeft = CHUNKS_AT_ONCE
      this.proceed()
    })
  }

  /**
   * Node thinks that a client which closes its sending side has left. But a submission is processed regardless, and its client may
   * wait for the result; and sending a response of known length shows by itself whether it is read. Other requests end, since it is
   * unknown whether anybody waits for them.
   */
  private readonly otherSideEnded = (): void => {
    const { due } = this
    const { originalUrl = '', complete } = (this.request ?? {}) as Partial<Request>
    const [path = ''] = originalUrl.split('?')
    const isSubmission = complete === true && SUBMISSIONS.test(path)
    const isBeingSent = due?.headersSent === true && due.hasHeader('Content-Length')
    if (due !== undefined && (isSubmission || isBeingSent)) due.once('close', this.leave)
    else this.leave()
  }

  private readMore(): boolean {
    const bytes = this.socket.read() as Buffer | null
    if (bytes === null) return false
    this.unparsed = this.unparsed.length === 0 ? bytes : Buffer.concat([this.unparsed, bytes])
    return true
  }

  /** Whether nothing more on this connection can be a request. */
  private get isOver(): boolean {
    return this.isRefused || (this.socket.writableEnded && this.request?.complete !== false)
  }

  private get mayProceed(): boolean {
    const { socket, request } = this
    if (socket.destroyed) return false
    if (request === undefined || this.isOver) return true
    if (!request.complete) return request.readableLength < request.readableHighWaterMark
    return this.due === undefined
  }

  /** The bytes up to the end of a head or a body; undefined if more have to come. */
  private nextPart(): Buffer | undefined {
    const { unparsed } = this
    const length = this.lengthOfPart()
    if (length === 0) return undefined
    this.unparsed = unparsed.subarray(length)
    this.chunksLeft -= Math.floor(length / CHUNK_BYTES)
    return unparsed.subarray(0, length)
  }

  private lengthOfPart(): number {
    const { unparsed } = this
    let length = this.takeBody(0)
    // The bytes that end a head or body may also occur inside chunks.
    while (this.isChunked && this.bodyLeft === 0 && this.chunksLeft > 0) {
      const lineEnd = unparsed.indexOf(LINE_END, length)
      if (lineEnd === -1) return length === 0 && unparsed.length > LONGEST_LINE ? unparsed.length : length
      const size = Number.parseInt(unparsed.toString('latin1', length, lineEnd), 16)
      // Trailers may follow the last chunk, of size 0. The parser refuses invalid sizes.
      if (!(size > 0)) this.isChunked = false
      else {
        this.chunksLeft--
        this.bodyLeft = lineEnd - length + size + 2 * LINE_END.length
        length = this.takeBody(length)
      }
    }
    if (length > 0) return length
    const end = unparsed.indexOf(END)
    return end === -1 ? unparsed.length - beginningOfEnd(unparsed) : end + END.length
  }

  /** Takes what has come of the body from an offset on, and returns the offset of its end. */
  private takeBody(from: number): number {
    const length = Math.min(this.bodyLeft, this.unparsed.length - from)
    this.bodyLeft -= length
    return from + length
  }

  /**
   * Delays the end of a connection that is to close with a response until the body of its request has come, or the client had time to
   * read the response: closed earlier, the connection would be reset, and the response lost (RFC 9112 9.6).
   */
  private endAfterBodies(): void {
    const { socket } = this
    const end = socket.destroySoon.bind(socket)
    // Node calls this after a response that ends the connection.
    socket.destroySoon = () => {
      const { request } = this
      if (request === undefined || request.complete) {
        end()
        return
      }
      discardBody(request)
      request.once('end', end)
      socket.end()
    }
  }
}

/** How many of the last bytes may be the start of {@link END}. */
function beginningOfEnd(bytes: Buffer): number {
  for (let length = END.length - 1; length > 0; length--)
    if (bytes.subarray(-length).equals(END.subarray(0, length))) return length
  return 0
}
