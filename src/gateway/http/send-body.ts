import type { Request, Response } from 'express'
import { DamagedError } from '../../../backend/src/graph/errors.js'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { isGzip, textType, UNTYPED } from '../../../backend/src/protocol/media-type.js'
import type { ByteRange } from '../../../backend/src/read/content.js'
import { type Exchange, endedByPrecondition, entityTag } from './caching.js'
import { AnswerError } from './errors.js'
import { contentRange, Multipart, requestedRanges } from './range.js'
import { securityHeaders, servedType } from './security-headers.js'

export type Header = readonly [name: string, value: string]
/** A header whose value may depend on the request. */
export type HeaderFor = readonly [name: string, value: string | ((request: Request) => string)]

/** What is known about a body before its bytes (RFC 9110 3.2). */
export interface Representation {
  /** Headers of every response with this body, including 304: without its type, length or range. */
  headers: readonly HeaderFor[]
  contentType: string
  /** In bytes. */
  length: number
  /** The strong entity tag. Without one, preconditions are ignored. */
  tag?: string
  /** Whether ranges can be requested; if so, it has a tag. */
  hasRanges?: boolean
  /** 200 by default. Other statuses ignore preconditions and ranges (RFC 9110 13.2.1). */
  status?: number
  /** The digest (RFC 9530) of its bytes, coded as they are sent, if known. */
  digest?: string
  /** For compressed content: the entity tag of its uncompressed form. */
  plainTag?: string
}

/**
 * The representation of content (`docs/spec/http.md`, Content).
 *
 * @param options.headers Headers that depend on the path.
 * @param options.policy The `Content-Security-Policy` of active content, if any.
 * @param options.isSite Whether it is on its own host, where text is declared as UTF-8.
 * @param options.start The first chunk of the body, or a function that reads it; without it, the type is as inscribed.
 */
export function contentRepresentation(
  { contentType, sha256, length }: ContentSummary,
  {
    headers,
    policy,
    status = 200,
    isSite = false,
    start,
  }: {
    headers: readonly Header[]
    policy: string | undefined
    status?: number
    isSite?: boolean
    start?: Uint8Array | (() => Uint8Array | undefined)
  },
): Representation {
  const { value: inscribed, active, text } = servedType(contentType)
  const read = text ? start : undefined
  const first = typeof read === 'function' ? read() : read
  const isCompressed = first !== undefined && isGzip(first)
  const value = isSite && first?.length === length ? textType(inscribed, first) : inscribed
  const plainTag = entityTag(sha256, value)
  // A client that does not accept gzip gets other bytes.
  const tag = isCompressed ? entityTag(sha256, `${value} gzip`) : plainTag
  return {
    headers: [
      ...headers,
      ...securityHeaders({ active, policy }),
      ...(isCompressed ? GZIP_HEADERS : []),
      ['ETag', tag],
      ['Accept-Ranges', 'bytes'],
    ],
    contentType: value,
    length,
    tag,
    hasRanges: true,
    ...(status !== 200 && { status }),
    ...(isCompressed && { plainTag }),
  }
}

interface BytesOptions {
  cache: string
  length: number
  tag?: string
  /** Further ones. */
  headers?: readonly Header[]
}

/** The representation of bytes that browsers neither show nor run. */
export function bytesRepresentation({ cache, length, tag, headers = [] }: BytesOptions): Representation {
  return {
    headers: [
      ['Cache-Control', cache],
      ...headers,
      ...securityHeaders({ active: false }),
      ...(tag === undefined ? [] : [['ETag', tag] as const]),
    ],
    ...{ contentType: UNTYPED, length, ...(tag !== undefined && { tag }) },
  }
}

const GZIP_HEADERS: readonly Header[] = [
  ['Content-Encoding', 'gzip'],
  ['Vary', 'Accept-Encoding'],
]

/**
 * Sets the status and the headers of a response.
 *
 * @returns The bytes to send, perhaps in parts; undefined if the response has ended, for HEAD or a client that has the content
 * already.
 * @throws AnswerError if the requested range has none of the bytes, or `If-Match` names other bytes.
 */
export function sendHead(
  exchange: Exchange & { representation: Representation },
): ByteRange | Multipart | undefined {
  const { request, response, representation } = exchange
  const { headers, contentType, length, tag, digest, hasRanges = false, status = 200 } = representation
  setHeaders({ request, response, headers })
  const isConditional = tag !== undefined && status === 200
  if (isConditional && endedByPrecondition({ request, response, tag })) return undefined
  const requested =
    isConditional && hasRanges && request.headers.range !== undefined
      ? requestedRanges(request, { tag, length, isCoded: response.hasHeader('Content-Encoding') })
      : undefined
  if (requested === 'unsatisfiable')
    throw new AnswerError('RANGE_NOT_SATISFIABLE', `the range is beyond the ${length} bytes of the content`, {
      headers: { 'Content-Range': `bytes */${length}` },
    })
  const [range = { from: 0, length }, ...others] = requested ?? []
  const sent = others.length === 0 ? range : new Multipart([range, ...others], { contentType, length })
  response.status(requested === undefined ? status : 206)
  if (requested !== undefined && sent === range)
    response.setHeader('Content-Range', contentRange(range, length))
  response.setHeader('Content-Type', sent instanceof Multipart ? sent.contentType : contentType)
  response.setHeader('Content-Length', sent.length)
  if (digest !== undefined) {
    response.setHeader('Repr-Digest', digest)
    // The digest of a range is not known.
    if (requested === undefined) response.setHeader('Content-Digest', digest)
  }
  if (request.method !== 'HEAD') return sent
  response.end()
  return undefined
}

export function setHeaders(exchange: Exchange & { headers: readonly HeaderFor[] }): void {
  const { request, response, headers } = exchange
  for (const [name, value] of headers)
    response.setHeader(name, typeof value === 'string' ? value : value(request))
}

/**
 * Sends chunks with backpressure. If the client disconnects, reading stops, which is not an error. The first chunk is read
 * before the head is sent: an error up to then still gets a response, while a later one can only break the connection. If the
 * first chunk is the complete body, nothing is streamed.
 *
 * @param body.length In bytes, if known.
 * @param body.held Bytes held in memory until all is sent, besides a chunk.
 */
export async function sendChunks<Chunk extends Uint8Array | string>(
  response: Response,
  { chunks, length, held = 0 }: { chunks: Chunks<Chunk>; length?: number; held?: number },
): Promise<void> {
  response.locals.held = held
  try {
    let next = await chunks.next()
    const isAll = next.done || next.value.length === length
    if (response.destroyed) return
    if (isAll) {
      response.end(next.value)
      return
    }
    // Reads, and writes to a socket with room, are synchronous: without yielding, a long body would block other requests.
    const slice = new TimeSlice()
    // Not `pipeline`, whose setup takes longer than sending a chunk from memory.
    while (!next.done) {
      if (!response.write(next.value)) await writable(response)
      if (response.destroyed) return
      if (slice.isOver) await slice.yieldIfOver()
      const following = chunks.next()
      next = following instanceof Promise ? await following : following
      if (response.destroyed) return
    }
    response.end()
  } catch (error) {
    if (!response.headersSent) throw error
    if (response.destroyed) return
    response.destroy()
    throw error
  } finally {
    await chunks.return(undefined)
  }
}

/** Synchronous from the store, or asynchronous. */
export type Chunks<Chunk> = Generator<Chunk> | AsyncGenerator<Chunk>

/** The `held` bytes given to {@link sendChunks}. */
export function heldFor({ locals }: Response): number {
  // A refused request has no locals.
  return (locals?.held as number | undefined) ?? 0
}

/** Resolves when a response can take more, or its client has left. */
async function writable(response: Response): Promise<void> {
  await new Promise<void>((resolve) => {
    const resume = (): void => {
      response.off('drain', resume).off('close', resume)
      resolve()
    }
    response.on('drain', resume).on('close', resume)
  })
}

/** The chunks of a body, which must add up to `length` bytes: a short one fails instead of ending early. */
export function* ofLength(
  chunks: Iterable<Uint8Array>,
  { sha256, length }: { sha256: string; length: number },
): Generator<Uint8Array> {
  let sent = 0
  for (const chunk of chunks) {
    sent += chunk.length
    yield chunk
  }
  if (sent !== length) throw shortOf({ sha256, length }, sent)
}

export function shortOf(
  { sha256, length }: { sha256: string; length: number },
  stored: number,
): DamagedError {
  return new DamagedError(sha256, `the store has ${stored} of the ${length} bytes to send`)
}

export const HTML_TYPE = 'text/html; charset=utf-8'
export const JSON_TYPE = 'application/json; charset=utf-8'

/** Not `response.json()`, which depends on settings of the host's app. */
export function sendJson(response: Response, value: unknown): void {
  sendText(response, JSON.stringify(value), JSON_TYPE)
}

export function sendText(response: Response, text: string, contentType: string): void {
  const body = Buffer.from(text, 'utf8')
  response.setHeader('Content-Type', contentType)
  response.setHeader('Content-Length', body.length)
  response.end(body)
}
