import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Request, Response } from 'express'
import { discardBody } from '../../gateway/http/request-body.js'
import { heldFor } from '../../gateway/http/send-body.js'
import { SUBMISSIONS } from './gates.js'
import { type Refusal, writeRefusal } from './http-refusal.js'
import type { Transfer, Transfers } from './transfers.js'

/** What the head of a request ends with, and a body in chunks (RFC 9112 2.1, 7.1). */
const END = Buffer.from('\r\n\r\n')
const LINE_END = END.subarray(2)
/** The longest line with the size of a chunk that is waited for, in bytes: Node's parser refuses longer ones. */
const LONGEST_LINE = 32 * 1024
const NOTHING: Buffer = Buffer.alloc(0)
/** How many chunks of a body are parsed before others have their turn: a tiny one takes as long as one of so many bytes. */
const CHUNKS_AT_ONCE = 64
const CHUNK_BYTES = 4096
/** What a connection keeps in memory without being counted, in bytes: most answers are shorter. */
const UNCOUNTED = 16 * 1024

/**
 * A connection of an HTTP server, which has one request at a time: the next one is parsed when the answer before it has left. So
 * the answers of a client that does not wait for them are in order, and it holds no more than one that does.
 *
 * Node would parse whatever has come, hundreds of requests at once. This class passes its parser the bytes up to the end of a
 * request, and leaves the others where they are.
 */
export class Connection {
  private request: IncomingMessage | undefined
  private response: ServerResponse | undefined
  private unparsed = NOTHING
  /** The bytes of the body, or of its chunk, that are still to come. */
  private bodyLeft = 0
  /** Whether a chunk of the body is still to come. */
  private isChunked = false
  private chunksLeft = CHUNKS_AT_ONCE
  private isTurnDue = false
  private isParsing = false
  private isRefused = false
  private readonly parse: (bytes: Buffer) => void
  private readonly leave: () => void
  /** What is counted of this connection. */
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
    // What Node calls when a body is read on.
    socket.resume = () => {
      if (this.unparsed.length + socket.readableLength > 0) process.nextTick(this.proceed)
      return socket
    }
    this.endAfterBodies()
  }

  get due(): ServerResponse | undefined {
    return this.response?.closed === false ? this.response : undefined
  }

  /** Whether the server is to move next: a request has arrived completely, and nothing of its response waits to be read. */
  get isWorkedOn(): boolean {
    return this.due !== undefined && this.request?.complete === true && this.socket.writableLength === 0
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    this.request = request
    this.response = response
    this.bodyLeft = Number(request.headers['content-length'] ?? 0)
    this.isChunked = request.headers['transfer-encoding'] !== undefined
  }

  /** Goes on when a response has left, or its client has. Others have their turn before. */
  ended(): void {
    this.transfer?.end()
    this.transfer = undefined
    if (this.unparsed.length + this.socket.readableLength > 0) setImmediate(this.proceed)
  }

  /** Counts what the connection keeps in memory until its client reads. Over the limit of all, some connection ends. */
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

  /** Refuses what cannot be parsed or does not come, unless a response has begun. */
  refuse(refusal: Refusal | undefined, options: { bodiless: boolean }): void {
    // Until the connection has ended, whatever follows cannot be parsed either.
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
    // Only who reads learns that the client has left.
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
   * Node takes a client that closes its sending side for one that has left. What was submitted is done nevertheless, and the client may
   * wait to hear of it; a response of known length that has begun shows by itself whether it is read. Other reads end: whether
   * anybody waits for them, nobody can tell.
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

  /** Whether nothing that comes is a request any more. */
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
    // What ends a body may also be in its chunks.
    while (this.isChunked && this.bodyLeft === 0 && this.chunksLeft > 0) {
      const lineEnd = unparsed.indexOf(LINE_END, length)
      if (lineEnd === -1) return length === 0 && unparsed.length > LONGEST_LINE ? unparsed.length : length
      const size = Number.parseInt(unparsed.toString('latin1', length, lineEnd), 16)
      // Behind the last chunk, of size 0, there may be trailers. What is no size is for the parser to refuse.
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

  /** The end of what has come of the body, which begins there. */
  private takeBody(from: number): number {
    const length = Math.min(this.bodyLeft, this.unparsed.length - from)
    this.bodyLeft -= length
    return from + length
  }

  /**
   * Has a connection that is to end with a response end only after the body of its request has come, or the client had time to
   * read the response: closed before, it would be reset, and the response lost (RFC 9112 9.6).
   */
  private endAfterBodies(): void {
    const { socket } = this
    const end = socket.destroySoon.bind(socket)
    // What Node calls after a response that ends the connection.
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

/** How many of the last bytes may be the beginning of {@link END}. */
function beginningOfEnd(bytes: Buffer): number {
  for (let length = END.length - 1; length > 0; length--)
    if (bytes.subarray(-length).equals(END.subarray(0, length))) return length
  return 0
}
