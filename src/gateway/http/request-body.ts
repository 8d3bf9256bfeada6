import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip, createInflate } from 'node:zlib'
import type { Request, RequestHandler } from 'express'
import pLimit from 'p-limit'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { AnswerError, BadRequestError, TooLargeError } from './errors.js'

/** A request body that is compressed where this host takes none, or in a way that it does not take. */
export class UnsupportedEncodingError extends AnswerError {
  override readonly name = 'UnsupportedEncodingError'
  readonly status = 415
  readonly code = 'UNSUPPORTED_ENCODING'
  override readonly headers: Record<string, string>

  /** @param accepted The codings that are accepted (RFC 9110 12.5.3), as `identity`. */
  constructor(accepted: string) {
    super(`the Content-Encoding of the body is not accepted here; send it as ${accepted}`)
    this.headers = { 'Accept-Encoding': accepted }
  }
}

/** One body that is being read, as whoever bounds their memory sees it. */
export interface Upload {
  /** Aborted, with the error to answer, when the body has to make room for others. */
  readonly signal: AbortSignal
  /** Counts bytes of memory that the body takes from now on. May abort the signal. */
  hold(bytes: number): void
  /** The body was read, refused or left: it holds nothing any more. */
  end(): void
}

export interface RequestBodiesOptions {
  /** Whether gzip and deflate are accepted; by default, no compressed body is. */
  inflate?: boolean
  /** Bounds the memory of all bodies that are being read; without it, only each one by itself is bounded. */
  beginUpload?: (request: Request) => Upload
}

/**
 * Bodies that are inflated at the same time. Each takes a thread of Node's pool, of which file reads need some, too.
 */
const MAX_INFLATING = 2
/** Pieces of a body that are tiny, in bytes, and how many of them may come at once: each takes as long as a large one. */
const TINY = 16
const MAX_TINY = 5000
/** Up to how many bytes a body waits for no other. */
const SHORT_BODY = 4 * 1024
/** Bytes of inflated output at a time. */
const INFLATED_PIECE = 64 * 1024

/** Both are inflated in a window of 32 KiB; one of brotli would be of 16 MiB. */
const INFLATERS = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate }
type Coding = keyof typeof INFLATERS

/**
 * Reads the bodies of requests into `request.body`: those of all routes, so that what one may cost is decided here alone.
 *
 * - A body that was read already, as by a host's own parser, is left as it is.
 * - A body over the limit of its route is refused with 413 as soon as that is known. Of what is still to come, a little is
 *   read off and dropped; then the connection ends.
 * - A compressed body is refused with 415 before any byte of it is read. Where a setting allows it, it is first received
 *   whole, so that an unfinished one holds its own bytes and no decompressor. Then it is inflated, few at a time, and the
 *   inflated bytes count against the same limits.
 * - Bytes are gathered in pages: a body that comes a byte at a time takes no more memory than one that comes at once.
 */
export class RequestBodies {
  private readonly inflating = pLimit(MAX_INFLATING)

  constructor(private readonly options: RequestBodiesOptions = {}) {}

  /** Bytes. `request.body` is a Buffer that is no view into a pool; undefined where there is no body. */
  raw({ limit }: { limit: number }): RequestHandler {
    return this.reader({ limit, parse: (bytes) => bytes })
  }

  /** JSON in UTF-8, whatever `Content-Type` says. An empty body is `{}`. */
  json({ limit }: { limit: number }): RequestHandler {
    return this.reader({ limit, parse: parseJson })
  }

  private reader({ limit, parse }: { limit: number; parse: (bytes: Buffer) => unknown }): RequestHandler {
    return (request, _response, next) => {
      if (!hasBody(request) || request.readableEnded) {
        next()
        return
      }
      this.read(request, limit)
        .then(async (bytes) => {
          // A long body takes long to answer: those that came together are looked at one after another.
          if (bytes.length > SHORT_BODY) await yieldToEventLoop()
          request.body = parse(bytes)
        })
        .then(() => next(), next)
    }
  }

  private async read(request: Request, limit: number): Promise<Buffer> {
    const upload = this.options.beginUpload?.(request) ?? unbounded()
    try {
      const coding = this.codingOf(request)
      if (Number(request.headers['content-length']) > limit) throw overLimit(limit)
      const announced = Number(request.headers['content-length']) || undefined
      const bytes = await gather(request, { limit, upload, announced })
      if (coding === 'identity') return bytes
      return await this.inflating(() => inflate(bytes, coding, { limit, upload }))
    } catch (error) {
      discard(request)
      throw error
    } finally {
      upload.end()
    }
  }

  /** @throws UnsupportedEncodingError */
  private codingOf({ headers }: IncomingMessage): Coding | 'identity' {
    const coding = headers['content-encoding']?.trim().toLowerCase() || 'identity'
    if (coding === 'identity') return coding
    if (!this.options.inflate) throw new UnsupportedEncodingError('identity')
    if (!Object.hasOwn(INFLATERS, coding)) throw new UnsupportedEncodingError('gzip, deflate, identity')
    return coding as Coding
  }
}

/** How many bytes of a refused body are read off, and for how long, in milliseconds. */
const MAX_DISCARDED = 1024 * 1024
const LINGER = 2000

/**
 * Reads off what is still to come of a refused body, where that is little: clients that write all of it first read the answer
 * then. Of more, nothing is read, and the connection ends when there was time to read the answer.
 */
function discard(request: IncomingMessage): void {
  if (request.complete) return
  let left = MAX_DISCARDED
  request.on('data', ({ length }: Buffer) => {
    left -= length
    if (left < 0) request.pause()
  })
  request.resume()
  const { socket } = request
  const lingering = setTimeout(() => socket.destroy(), LINGER).unref()
  request.once('end', () => clearTimeout(lingering))
}

function unbounded(): Upload {
  return { signal: new AbortController().signal, hold() {}, end() {} }
}

/** RFC 9112 6: these two headers alone say that there is a body. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined
}

function overLimit(limit: number): TooLargeError {
  return new TooLargeError(`the body exceeds the limit of ${limit} bytes`)
}

function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return {}
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // The parser quotes what it read; the sentence is the same for whatever was sent.
    throw new BadRequestError('BAD_BODY', 'the body must be JSON in UTF-8')
  }
}

/** @throws BadRequestError where the bytes are not of that coding; as {@link gather} does. */
async function inflate(bytes: Buffer, coding: Coding, bounds: Bounds): Promise<Buffer> {
  bounds.upload.signal.throwIfAborted()
  const stream = INFLATERS[coding]({ chunkSize: INFLATED_PIECE })
  stream.end(bytes)
  try {
    return await gather(stream, bounds)
  } catch (error) {
    if (error instanceof AnswerError) throw error
    throw new BadRequestError('BAD_BODY', `the body is not valid ${coding}`)
  } finally {
    stream.destroy()
  }
}

interface Bounds {
  limit: number
  upload: Upload
  announced?: number | undefined
}

/**
 * All bytes of a stream.
 *
 * @throws TooLargeError where there are more than the limit, BadRequestError where the stream ends early, what the signal
 * of the upload is aborted with, and what the stream fails with.
 */
async function gather(stream: Readable, { limit, upload, announced }: Bounds): Promise<Buffer> {
  const { signal } = upload
  signal.throwIfAborted()
  if (stream.destroyed) throw endedEarly()
  return await new Promise((resolve, reject) => {
    const pages = new Pages((bytes) => upload.hold(bytes), announced)
    const settle = (error?: unknown): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
      // Of a stream that was given up: nobody else listens for what goes wrong with it now.
      stream.on('error', () => {})
      signal.removeEventListener('abort', onAbort)
      if (error === undefined) resolve(pages.whole())
      else reject(error)
    }
    let tiny = 0
    const onData = (piece: Buffer): void => {
      if (piece.length < TINY && tiny++ === 0)
        setImmediate(() => {
          tiny = 0
        })
      if (tiny > MAX_TINY) {
        settle(tooSmallPieces())
        // What has been read of it would be taken apart to its end.
        stream.destroy()
        return
      }
      if (pages.length + piece.length > limit) settle(overLimit(limit))
      else pages.add(piece)
    }
    const onEnd = (): void => settle()
    // A request fails with nothing but its connection.
    const onError = (error: NodeJS.ErrnoException): void =>
      settle(error.code === 'ECONNRESET' ? endedEarly() : error)
    const onClose = (): void => settle(endedEarly())
    const onAbort = (): void => settle(signal.reason)
    signal.addEventListener('abort', onAbort)
    stream.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
  })
}

function tooSmallPieces(): BadRequestError {
  return new BadRequestError('BAD_BODY', 'the body arrives in thousands of tiny chunks')
}

function endedEarly(): BadRequestError {
  return new BadRequestError('BAD_BODY', 'the connection closed before the body was complete')
}

const FIRST_PAGE = 4 * 1024
const LARGEST_PAGE = 1024 * 1024
/** Which part of an announced body has to have come before memory is taken for all of it. */
const BELIEVED = 1 / 16

let hasJoined = false

/** Whether memory may be taken for all of a body: of one in a turn of the event loop, as hundreds may have come so far at once. */
function mayJoin(): boolean {
  if (hasJoined) return false
  hasJoined = true
  setImmediate(() => {
    hasJoined = false
  })
  return true
}

/**
 * Bytes that come in pieces of any size, copied into pages that grow with them; the last page of an announced body has
 * room for the whole of it, so that nothing is copied in the end.
 */
class Pages {
  length = 0
  private readonly full: Buffer[] = []
  private page = Buffer.alloc(0)
  private used = 0

  /**
   * @param onPage Is told of each page, in bytes, before it is made.
   * @param announced Bytes that are said to come; undefined where nothing is.
   */
  constructor(
    private readonly onPage: (bytes: number) => void,
    private readonly announced?: number,
  ) {}

  add(piece: Buffer): void {
    let at = 0
    while (at < piece.length) {
      if (this.used === this.page.length) this.turn()
      const copied = piece.copy(this.page, this.used, at)
      this.used += copied
      this.length += copied
      at += copied
    }
  }

  whole(): Buffer {
    if (this.full.length > 0) this.join(this.length)
    return this.page.subarray(0, this.used)
  }

  private turn(): void {
    const { announced = 0, length } = this
    if (length < announced && length >= announced * BELIEVED && mayJoin()) this.join(announced)
    else {
      if (length > 0) this.full.push(this.page)
      this.page = this.make(Math.min(Math.max(FIRST_PAGE, length), LARGEST_PAGE))
      this.used = 0
    }
  }

  /** One page of all that came, with room for so many bytes. */
  private join(bytes: number): void {
    const pages = [...this.full.splice(0), this.page.subarray(0, this.used)]
    this.page = this.make(bytes)
    this.used = 0
    for (const page of pages) this.used += page.copy(this.page, this.used)
  }

  private make(bytes: number): Buffer<ArrayBuffer> {
    this.onPage(bytes)
    return Buffer.allocUnsafeSlow(bytes)
  }
}
