import { type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import { type GraphReader, ORIGIN } from '../../../backend/src/graph/graph-store.js'
import { UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'
import {
  formatOutpoint,
  type Outpoint,
  PointerError,
  parseOutpoint,
} from '../../../backend/src/protocol/outpoint.js'
import { CACHE } from '../http/cache-policy.js'
import { NotFoundError } from '../http/errors.js'
import { leavingOf } from '../http/long-read.js'
import { CONTENT_HEADERS, type OperationGroup, SERVICE_WORKER, STORE_ERRORS } from '../http/operation.js'
import { percentDecoded } from '../http/percent-decode.js'
import { askedOutpoint } from '../http/schemas.js'
import { sendChunks } from '../http/send-chunks.js'
import { sendHead } from '../http/send-head.js'
import { refuseServiceWorkers } from '../http/service-worker.js'
import { streamBody } from './stream-chunks.js'

export interface StreamOptions {
  store: GraphReader
  /** The content types of a stream's further chunks (`Profile`). */
  chunkTypes: string[]
  /** The `Content-Security-Policy` of what a browser would run. */
  policy: string
}

/**
 * `GET /stream/{outpoint}`, below each of the prefixes: what an ordinal holds from that output on, step after step, as
 * one body (`service.md` 4.3; `spec/http.md`, Streams).
 */
export function streamRoutes({ prefixes, ...options }: StreamOptions & { prefixes: string[] }): Router {
  // Not a path with a parameter: what Express cannot decode is no outpoint, as any other text.
  return Router().use(prefixes, Router().get(/^\/stream\//, refuseServiceWorkers, serveStream(options)))
}

/** Where the stream's ordinal starts: of a stream from the middle on, what it starts with may be blocked. */
async function originOf(outpoint: Outpoint, store: GraphReader): Promise<Outpoint | undefined> {
  try {
    return (await store.ordinals.at(outpoint, ORIGIN))?.origin
  } catch (error) {
    if (error instanceof BlockedError) return undefined
    throw error
  }
}

/** How often a stream is begun that turns before any byte of it is out. */
const TRIES = 5

function serveStream(options: StreamOptions): RequestHandler {
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

function sendStream({ store, chunkTypes, policy }: StreamOptions): RequestHandler {
  return async (request, response) => {
    const written = request.path.slice('/stream/'.length)
    const text = percentDecoded(written)
    if (text === undefined) throw new PointerError('BAD_OUTPOINT', written)
    const query = { outpoint: parseOutpoint(text), chunkTypes }
    const stream = await store.streams.summary({ ...query, signal: leavingOf(response) })
    if (stream === undefined) throw new NotFoundError('no content at this outpoint in this store')
    const origin = await originOf(query.outpoint, store)
    response.setHeader('Cache-Control', CACHE.revalidate)
    response.setHeader('X-Outpoint', formatOutpoint(query.outpoint))
    if (origin !== undefined) response.setHeader('X-Origin', formatOutpoint(origin))
    const range = sendHead({ request, response, content: stream, policy })
    if (range === undefined) return
    await sendChunks(response, {
      pieces: streamBody({ store, query, stream, range }),
      length: range.length,
    })
  }
}

export const STREAM_OPERATIONS: OperationGroup = {
  tag: 'content',
  operations: {
    stream: {
      route: 'GET /stream/{outpoint}',
      summary: 'The content of an ordinal from an output on, step after step, as one body',
      description:
        "The output's own content and that of the following steps, up to the first one that has no content, has a type that chunks do not have, or is not in this store. It may start at any chunk.",
      params: z.object({ outpoint: askedOutpoint }),
      headers: SERVICE_WORKER,
      answer: {
        description: 'The stream, with the type of its very first chunk, wherever it starts.',
        headers: [...CONTENT_HEADERS, 'ETag', 'Accept-Ranges', 'X-Outpoint', 'X-Origin'],
        types: ['*/*'],
      },
      errors: {
        BAD_OUTPOINT: 'The path does not end with an outpoint.',
        BAD_BODY: 'A service worker is being installed.',
        NOT_FOUND: 'This store has no content there.',
        BLOCKED: 'The operator has blocked the output or one of its chunks.',
        ...STORE_ERRORS,
      },
    },
  },
}
