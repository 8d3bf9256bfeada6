import type { Request, Response } from 'express'
import { type ByteRange, type ContentReader, SHORT_BODY } from '../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../backend/src/graph/records.js'
import { askedRange, contentRange } from './byte-range.js'
import { servedType } from './content-type.js'
import { entityTag } from './entity-tag.js'
import { RangeNotSatisfiableError } from './error-response.js'
import { setSecurityHeaders } from './security-headers.js'
import { sendPieces } from './send-pieces.js'

/** Answers with a body and the headers that are its own (`spec/http.md`, Content). */
export async function sendContent(options: {
  request: Request
  response: Response
  store: ContentReader
  content: ContentSummary
  /** For what a browser would run. */
  policy: string
}): Promise<void> {
  const { request, response, store, content, policy } = options
  const type = servedType(content.contentType)
  const tag = entityTag(content.sha256)
  setSecurityHeaders(response, { active: type.active, policy })
  response.setHeader('ETag', tag)
  response.setHeader('Accept-Ranges', 'bytes')
  // Express reads several headers for it; there is nothing but the tag to compare.
  if (request.headers['if-none-match'] !== undefined && request.fresh) {
    response.status(304).end()
    return
  }
  const asked = rangeOf(request, { tag, length: content.length })
  if (asked === 'unsatisfiable') throw new RangeNotSatisfiableError(content.length)
  const range = asked === 'whole' ? { from: 0, length: content.length } : asked
  if (asked !== 'whole') response.status(206).setHeader('Content-Range', contentRange(asked, content.length))
  // Not `response.type()`, which would add a charset that nobody inscribed.
  response.setHeader('Content-Type', type.value)
  response.setHeader('Content-Length', range.length)
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  if (content.length <= SHORT_BODY) {
    const body = await store.shortBody(content.sha256)
    if (body?.length !== content.length) throw shortOf(content.length, body?.length ?? 0)
    response.end(asked === 'whole' ? body : body.subarray(range.from, range.from + range.length))
    return
  }
  await sendPieces(response, {
    pieces: wholeRange(store.contentPieces(content.sha256, range), range),
    length: range.length,
  })
}

/** Ranges are of GET alone: on HEAD, RFC 9110 14.2 has the header ignored, and the head is that of the whole. */
function rangeOf(request: Request, body: { tag: string; length: number }): ReturnType<typeof askedRange> {
  if (request.method !== 'GET' || request.headers.range === undefined) return 'whole'
  return askedRange({ ...body, range: request.headers.range, ifRange: request.get('If-Range') })
}

/** The pieces, as long as they add up: a body that is short is an error, never a short answer. */
async function* wholeRange(
  pieces: AsyncIterable<Uint8Array>,
  { length }: ByteRange,
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of pieces) {
    sent += piece.length
    yield piece
  }
  if (sent !== length) throw shortOf(length, sent)
}

function shortOf(length: number, held: number): Error {
  return new Error(`of ${length} bytes to send, the store has ${held}`)
}
