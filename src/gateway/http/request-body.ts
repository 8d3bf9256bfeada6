import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip, createInflate } from 'node:zlib'
import type { Request, RequestHandler, Response } from 'express'
import pLimit from 'p-limit'
import { inLaterTurn } from '../../../backend/src/graph/yield-to-event-loop.js'
import { AnswerError } from './errors.js'

/** @param accepted The accepted codings (RFC 9110 12.5.3), such as `identity`. */
function unsupportedEncoding(accepted: string): AnswerError {
  const message = `the Content-Encoding of the body is not accepted here; send it as ${accepted}`
  return new AnswerError('UNSUPPORTED_ENCODING', message, { headers: { 'Accept-Encoding': accepted } })
}

/** A body being received, as seen by the code that limits the memory of all. */
export interface Upload {
  /** Aborted, with the error to send, if the body has to make room for others. */
  readonly signal: AbortSignal
  /** Adds to the memory of the body. May abort the signal. */
  hold(bytes: number): void
  /** Call when the body was received, refused or abandoned, to free its memory. */
  end(): void
}

interface Place {
  leave(): void
  /** Resolves when there is a slot again. */
  enter(): Promise<void>
}

/** Makes a request leave its slot while its body arrives. */
export function whileReceiving(response: Response, place: Place): void {
  response.locals.place = place
}

export interface RequestBodiesOptions {
  /** Whether gzip and deflate are accepted; by default, compressed bodies are not. */
  inflate?: boolean
  /** Limits the memory of all bodies together; by default, each has only its own limit. */
  uploads?: { begin(request: Request): Upload }
}

/** The most bodies inflated in parallel. Each takes a thread of Node's pool, which file reads need too. */
const MAX_INFLATING = 2
/** The size of a tiny chunk, in bytes, and how many may arrive at once: each takes as long as a large one. */
const TINY = 16
const MAX_TINY = 5000
/** Up to this many bytes, a body does not wait for others. */
const SHORT_BODY = 4 * 1024
const INFLATED_CHUNK = 64 * 1024

/** Both inflate in a window of 32 KiB; brotli's would be 16 MiB. */
const INFLATERS = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate }
type Coding = keyof typeof INFLATERS

/**
 * Reads request bodies into `request.body`, for all routes, so that the cost of a body is decided in one place.
 *
 * - A body that was already read, for instance by a parser of the host, is left alone.
 * - A body over the limit of its route is refused with 413 as soon as that is known. A little of the rest is read and dropped;
 *   then the connection ends.
 * - A compressed body is refused with 415 before any byte of it is read. If a setting allows it, it is first received
 *   completely, so that an unfinished one holds only its own bytes and no decompressor. Then it is inflated, few at a time,
 *   and the inflated bytes count towards the same limits.
 * - Bytes are copied into one buffer: a body that arrives byte by byte takes no more memory than one that arrives at once.
 */
export class RequestBodies {
  private readonly inflating = pLimit(MAX_INFLATING)

  constructor(private readonly options: RequestBodiesOptions = {}) {}

  /** Reads bytes: `request.body` is a Buffer that is not a view into a pool; undefined if there is no body. */
  raw({ limit }: { limit: number }): RequestHandler {
    return this.reader({ limit, parse: (bytes) => bytes })
  }

  /** Reads JSON in UTF-8, whatever the `Content-Type`. An empty body is `{}`. */
  json({ limit }: { limit: number }): RequestHandler {
    return this.reader({ limit, parse: parseJson })
  }

  private reader({ limit, parse }: { limit: number; parse: (bytes: Buffer) => unknown }): RequestHandler {
    return (request, response, next) => {
      if (!hasBody(request) || request.readableEnded) {
        next()
        return
      }
      const handle = (bytes: Buffer): void => {
        try {
          request.body = parse(bytes)
        } catch (error) {
          next(error)
          return
        }
        next()
      }
      const { place } = response.locals
      this.read(request, { limit, place }).then((bytes) => {
        // A long body takes long to handle; those that arrive together are handled one after another.
        if (bytes.length > SHORT_BODY) inLaterTurn('reading', () => handle(bytes))
        else handle(bytes)
      }, next)
    }
  }

  private async read(
    request: Request,
    { limit, place }: { limit: number; place: Place | undefined },
  ): Promise<Buffer> {
    const upload = this.options.uploads?.begin(request) ?? unbounded()
    try {
      const coding = this.codingOf(request)
      if (Number(request.headers['content-length']) > limit) throw overLimit(limit)
      const announced = Number(request.headers['content-length']) || undefined
      place?.leave()
      const bytes = await gather(request, { limit, upload, announced })
      if (place !== undefined) await place.enter()
      if (coding === 'identity') return bytes
      return await this.inflating(() => inflate(bytes, coding, { limit, upload }))
    } catch (error) {
      discardBody(request)
      throw error
    } finally {
      upload.end()
    }
  }

  private codingOf({ headers }: IncomingMessage): Coding | 'identity' {
    const coding = headers['content-encoding']?.trim().toLowerCase() || 'identity'
    if (coding === 'identity') return coding
    if (!this.options.inflate) throw unsupportedEncoding('identity')
    if (!Object.hasOwn(INFLATERS, coding)) throw unsupportedEncoding('gzip, deflate, identity')
    return coding as Coding
  }
}

/** How many bytes of a refused body are read and dropped, and for how many milliseconds. */
const MAX_DISCARDED = 1024 * 1024
/** Tiny chunks count as this many bytes, since they take as long. */
const LEAST_COUNTED = 1024
const LINGER = 2000

const discarded = new WeakSet<IncomingMessage>()

/**
 * Reads and drops the rest of a refused body, if it is short: some clients read the response only after they have sent
 * everything. More is not read, and the connection ends after the client had time to read the response.
 */
export function discardBody(request: IncomingMessage): void {
  // Unread data would hold up the next request.
  request.resume()
  if (request.complete || discarded.has(request)) return
  discarded.add(request)
  let left = MAX_DISCARDED
  request.on('data', ({ length }: Buffer) => {
    left -= Math.max(length, LEAST_COUNTED)
    if (left < 0) request.pause()
  })
  const { socket } = request
  const lingering = setTimeout(() => socket.destroy(), LINGER).unref()
  request.once('end', () => clearTimeout(lingering))
}

function unbounded(): Upload {
  return { signal: new AbortController().signal, hold() {}, end() {} }
}

/** RFC 9112 6: only these two headers announce a body. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined
}

function overLimit(limit: number): AnswerError {
  return new AnswerError('TOO_LARGE', `the body exceeds the limit of ${limit} bytes`)
}

function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return {}
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // The parser's own message would quote the input.
    throw new AnswerError('BAD_BODY', 'the body must be JSON in UTF-8')
  }
}

/** @throws AnswerError if the bytes do not have that coding; errors of {@link gather}. */
async function inflate(bytes: Buffer, coding: Coding, bounds: Bounds): Promise<Buffer> {
  bounds.upload.signal.throwIfAborted()
  const stream = INFLATERS[coding]({ chunkSize: INFLATED_CHUNK })
  stream.end(bytes)
  try {
    return await gather(stream, bounds)
  } catch (error) {
    if (error instanceof AnswerError) throw error
    throw new AnswerError('BAD_BODY', `the body is not valid ${coding}`)
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
 * @throws AnswerError if they exceed the limit, or the stream ends early; the reason of the upload's signal; errors of the
 * stream.
 */
function gather(stream: Readable, { limit, upload, announced = 0 }: Bounds): Promise<Buffer> {
  const { signal } = upload
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    if (stream.destroyed) throw endedEarly()
    const received = new Received({ limit, announced, upload })
    const finish = (error?: unknown): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
      // An abandoned stream may still fail, and nothing else listens for its errors.
      stream.on('error', () => {})
      signal.removeEventListener('abort', onAbort)
      if (error === undefined) resolve(received.all())
      else reject(error)
    }
    let tiny = 0
    const onData = (chunk: Buffer): void => {
      if (chunk.length < TINY && tiny++ === 0)
        setImmediate(() => {
          tiny = 0
        })
      if (tiny > MAX_TINY) {
        finish(tooManyTinyChunks())
        // Otherwise data that has arrived would still be parsed to the end.
        stream.destroy()
        return
      }
      if (received.length + chunk.length > limit) finish(overLimit(limit))
      else received.add(chunk)
    }
    const onEnd = (): void => finish()
    // A request fails only with its connection.
    const onError = (error: NodeJS.ErrnoException): void =>
      finish(error.code === 'ECONNRESET' ? endedEarly() : error)
    const onClose = (): void => finish(endedEarly())
    const onAbort = (): void => finish(signal.reason)
    signal.addEventListener('abort', onAbort)
    stream.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
  })
}

function tooManyTinyChunks(): AnswerError {
  return new AnswerError('BAD_BODY', 'the body arrives in thousands of tiny chunks')
}

function endedEarly(): AnswerError {
  return new AnswerError('BAD_BODY', 'the connection closed before the body was complete')
}

const LEAST_ROOM = 4 * 1024
/** The share of an announced body that has to arrive before all its memory is allocated. */
const TRUSTED_SHARE = 1 / 16

class Received {
  length = 0
  private room = Buffer.alloc(0)

  /** @param options.announced The announced length in bytes; 0 if there is none. */
  constructor(private readonly options: { limit: number; announced: number; upload: Upload }) {}

  add(chunk: Buffer): void {
    const needed = this.length + chunk.length
    if (needed > this.room.length) {
      const { limit, announced } = this.options
      const isTrusted = needed <= announced && needed >= announced * TRUSTED_SHARE
      const doubled = Math.max(LEAST_ROOM, 2 ** Math.ceil(Math.log2(needed)))
      this.moveTo(isTrusted ? announced : Math.min(doubled, limit))
    }
    this.length += chunk.copy(this.room, this.length)
  }

  /** All bytes, in a buffer of exactly their length: that is counted while a submission waits, and sent to other threads. */
  all(): Buffer {
    if (this.room.length > this.length) this.moveTo(this.length)
    return this.room
  }

  /** The old buffer is not counted: it is copied immediately, for one body at a time. */
  private moveTo(bytes: number): void {
    const { room } = this
    const { upload } = this.options
    upload.hold(bytes - room.length)
    // The body had to make room for others.
    if (upload.signal.aborted) return
    this.room = Buffer.allocUnsafeSlow(bytes)
    room.copy(this.room, 0, 0, this.length)
  }
}
