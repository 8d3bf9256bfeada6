import type { Request, Response } from 'express'
import type { ByteRange } from '../../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import { servedType } from '../content/content-type.js'
import { endedByPrecondition, entityTag } from './entity-tag.js'
import { RangeNotSatisfiableError } from './errors.js'
import { askedRange, contentRange } from './range.js'
import { setSecurityHeaders } from './security-headers.js'

/**
 * Sets the status and the headers that belong to bytes whose length is known (`spec/http.md`, Content), and says which of
 * them are to be sent; undefined where the answer is over, as to HEAD and to whoever has them already.
 *
 * @throws RangeNotSatisfiableError where a range is asked for that has none of the bytes; PreconditionFailedError where
 * other bytes are.
 */
export function sendHead(options: {
  request: Request
  response: Response
  content: ContentSummary
  /** For what a browser would run. */
  policy: string
}): ByteRange | undefined {
  const { request, response, content, policy } = options
  const type = servedType(content.contentType)
  const tag = entityTag(content.sha256)
  setSecurityHeaders(response, { active: type.active, policy })
  response.setHeader('ETag', tag)
  response.setHeader('Accept-Ranges', 'bytes')
  if (endedByPrecondition({ request, response, tag })) return undefined
  const asked = rangeOf(request, { tag, length: content.length })
  if (asked === 'unsatisfiable') throw new RangeNotSatisfiableError(content.length)
  const range = asked === 'whole' ? { from: 0, length: content.length } : asked
  if (asked !== 'whole') response.status(206).setHeader('Content-Range', contentRange(asked, content.length))
  // Not `response.type()`, which would add a charset that nobody inscribed.
  response.setHeader('Content-Type', type.value)
  response.setHeader('Content-Length', range.length)
  if (request.method !== 'HEAD') return range
  response.end()
  return undefined
}

/** Ranges are of GET alone: on HEAD, RFC 9110 14.2 has the header ignored, and the head is that of the whole. */
function rangeOf(request: Request, body: { tag: string; length: number }): ReturnType<typeof askedRange> {
  if (request.method !== 'GET' || request.headers.range === undefined) return 'whole'
  return askedRange({ ...body, range: request.headers.range, ifRange: request.get('If-Range') })
}
