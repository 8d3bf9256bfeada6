import type { RequestHandler } from 'express'
import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import { UnstableReadError } from '../../../backend/src/graph/errors.js'
import { ORIGIN } from '../../../backend/src/graph/records.js'
import {
  type StreamChunk,
  type StreamQuery,
  type StreamSegment,
  type StreamSummary,
  segmentOf,
} from '../../../backend/src/graph/stream.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { ByteRange } from '../../../backend/src/read/content.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { CACHE } from '../http/caching.js'
import { OriginUnknownError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { leavingOf } from '../http/long-read.js'
import {
  CONTENT_HEADERS,
  described,
  ORIGIN_PENDING,
  type Routes,
  SERVICE_WORKER,
  STORE_ERRORS,
} from '../http/operation.js'
import { Multipart } from '../http/range.js'
import { askedOutpoint, pointerIn } from '../http/schemas.js'
import { refuseServiceWorkers } from '../http/security-headers.js'
import { contentRepresentation, type Header, ofLength, sendChunks, sendHead } from '../http/send-body.js'

/**
 * `GET /stream/{outpoint}`, below each of the prefixes: the contents of an ordinal from that output on, step after step, as one
 * body (`docs/spec/http.md`, Content).
 */
export function streamRoutes(options: GatewayParts): Routes {
  return routes({ stream: [refuseServiceWorkers, serveStream(options)] })
}

/** The approximate memory of a segment, in bytes. */
const HELD_BY_SEGMENT = 64

/** How often a stream is restarted if it changes before its first byte is sent. */
const TRIES = 5

function serveStream(options: GatewayParts): RequestHandler {
  const send = sendStream(options)
  return async (request, response, next) => {
    const before = response.getHeaders()
    for (let tried = 1; ; tried++) {
      try {
        return await send(request, response, next)
      } catch (error) {
        if (!(error instanceof UnstableReadError) || response.headersSent || tried === TRIES) throw error
        for (const name of response.getHeaderNames()) response.removeHeader(name)
        for (const [name, value] of Object.entries(before)) response.setHeader(name, value ?? [])
        response.status(200)
      }
    }
  }
}

function sendStream({ store, profile, policy }: GatewayParts): RequestHandler {
  const { streamChunkContentTypes: chunkTypes } = profile
  return async (request, response) => {
    const pointer = pointerIn(request)
    const query = { outpoint: parseOutpoint(pointer), chunkTypes }
    const stream = await store.streams.summary({ ...query, signal: leavingOf(response) })
    if (stream === undefined)
      throw new OriginUnknownError('this store has no content at this outpoint', query.outpoint)
    // A blocked origin does not block a stream from a later step.
    const origin = unlessBlocked(() => store.ordinals.at(query.outpoint, ORIGIN)?.origin)
    const headers: Header[] = [
      ['Cache-Control', CACHE.revalidate],
      ['X-Outpoint', formatOutpoint(query.outpoint)],
      ...(origin === undefined ? [] : [['X-Origin', formatOutpoint(origin)] satisfies Header]),
    ]
    const representation = contentRepresentation(stream, { headers, policy })
    const range = sendHead({ request, response, representation })
    if (range === undefined) return
    const read = (part: ByteRange) => streamBody({ store, query, stream, range: part })
    await sendChunks(response, {
      chunks: range instanceof Multipart ? range.chunks(read) : read(range),
      length: range.length,
      held: stream.segments.length * HELD_BY_SEGMENT,
    })
  }
}

/**
 * Exactly the bytes of a range of a stream, in chunks. The steps of overlapping segments are read again, and bodies only as far
 * as needed.
 *
 * @throws Error if a body is incomplete in the store.
 * @throws UnstableReadError before any byte of a segment that differs from the summary.
 */
async function* streamBody({
  store,
  query,
  stream: { segments },
  range,
}: {
  store: GraphReads
  query: StreamQuery
  stream: StreamSummary
  range: ByteRange
}): AsyncGenerator<Uint8Array> {
  const end = range.from + range.length
  const { start: first, skipped, wanted } = overlapOf(segments, range)
  const count = wanted.reduce((sum, segment) => sum + segment.chunks, 0)
  const chunks = store.streams.chunks(query, skipped, count)
  let start = first
  try {
    for (const segment of wanted)
      for (const chunk of await segmentChunks(chunks, segment)) {
        const from = Math.max(range.from - start, 0)
        const length = Math.min(end - start, chunk.length) - from
        if (length > 0)
          yield* ofLength(store.content.chunks(chunk.sha256, { from, length }), {
            sha256: chunk.sha256,
            length,
          })
        start += chunk.length
      }
  } finally {
    await chunks.return(undefined)
  }
}

/** The segments that a range overlaps, the number of chunks before them, and the position of the first segment's first byte. */
function overlapOf(
  segments: readonly StreamSegment[],
  range: ByteRange,
): { start: number; skipped: number; wanted: StreamSegment[] } {
  const end = range.from + range.length
  let [start, skipped, at] = [0, 0, 0]
  for (let next = segments[at]; next && start + next.length <= range.from; next = segments[++at]) {
    start += next.length
    skipped += next.chunks
  }
  const wanted: StreamSegment[] = []
  for (let next = segments[at], to = start; next && to < end; next = segments[++at]) {
    wanted.push(next)
    to += next.length
  }
  return { start, skipped, wanted }
}

async function segmentChunks(
  chunks: AsyncIterator<StreamChunk>,
  segment: StreamSegment,
): Promise<StreamChunk[]> {
  const read: StreamChunk[] = []
  while (read.length < segment.chunks) {
    const { done, value } = await chunks.next()
    if (done) throw changed()
    read.push(value)
  }
  if (segmentOf(read).sha256 !== segment.sha256) throw changed()
  return read
}

function changed(): UnstableReadError {
  return new UnstableReadError('the stream changed while it was read; try again')
}

const routes = described({
  tag: 'content',
  operations: {
    stream: {
      route: 'GET /stream/{outpoint}',
      pattern: /^\/stream\//,
      summary: 'The content of an ordinal from an output onwards, concatenated',
      description:
        'The content of the output and of the steps after it, up to the first step that has no content, is not of a chunk type, or is not in this store. Any chunk may be the start.',
      params: z.object({ outpoint: askedOutpoint }),
      headers: SERVICE_WORKER,
      answer: {
        description: 'The stream, with the type of its first chunk, even if it starts at a later one.',
        headers: [...CONTENT_HEADERS, 'ETag', 'Accept-Ranges', 'X-Outpoint', 'X-Origin'],
        types: ['*/*'],
      },
      errors: {
        BAD_OUTPOINT: 'The path does not end with an outpoint.',
        BAD_BODY: 'A service worker is being installed.',
        NOT_FOUND: 'This store has no content there.',
        ORIGIN_PENDING,
        BLOCKED: 'The operator has blocked the output or one of its chunks.',
        ...STORE_ERRORS,
      },
    },
  },
})
