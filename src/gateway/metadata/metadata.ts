import { type Request, type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { Slices } from '../../../backend/src/graph/yield-to-event-loop.js'
import { PointerError, parseContentReference } from '../../../backend/src/protocol/outpoint.js'
import { CACHE } from '../http/cache-policy.js'
import { endedByPrecondition, entityTag } from '../http/entity-tag.js'
import { BadRequestError, NotFoundError, TooLargeError } from '../http/errors.js'
import { percentDecoded } from '../http/percent-decode.js'
import type { RequestBodies } from '../http/request-body.js'
import { sendChunks } from '../http/send-chunks.js'
import { JSON_TYPE } from '../http/send-json.js'
import { type MetadataOptions, type MetadataRecord, metadataRecord } from './metadata-record.js'

/** 100 pointers, the most that the settings allow, with sequences, of at most 96 characters, with room for their quotes and spaces. */
const MAX_BODY_BYTES = 64 * 1024

/** What is known of outputs and ordinals (`spec/http.md`, Metadata), below each of the prefixes. */
export function metadataRoutes(
  options: MetadataOptions & {
    prefixes: string[]
    /** How many pointers are taken at once. */
    maxPointers: number
    bodies: RequestBodies
  },
): Router {
  const routes = Router()
    // Not a path with parameters: Express would decode escapes before anything is read here.
    .get(/^\/metadata\/[^/]+$/, single(options))
    .post('/metadata', options.bodies.json({ limit: MAX_BODY_BYTES }), bulk(options))
  return Router().use(options.prefixes, routes)
}

function single(options: MetadataOptions): RequestHandler {
  return async (request, response) => {
    const record = await metadataRecord(options, parseContentReference(askedFor(request)))
    if (record === undefined) {
      throw new NotFoundError('no such output or step in this store, or its origin is not known here')
    }
    const body = Buffer.from(JSON.stringify(record), 'utf8')
    const tag = entityTag(sha256(body).toString('hex'))
    response.set('Cache-Control', CACHE.revalidate).set('ETag', tag)
    if (endedByPrecondition({ request, response, tag })) return
    response.set('Content-Type', JSON_TYPE).set('Content-Length', String(body.length)).end(body)
  }
}

function askedFor({ path }: Request): string {
  const escaped = path.slice('/metadata/'.length)
  const text = percentDecoded(escaped)
  if (text === undefined) throw new PointerError('BAD_OUTPOINT', escaped)
  return text
}

const pointers = z.union([z.array(z.string()), z.object({ outpoints: z.array(z.string()) })])

function bulk(options: MetadataOptions & { maxPointers: number }): RequestHandler {
  const { maxPointers } = options
  return async (request, response) => {
    const asked = pointers.safeParse(request.body)
    if (!asked.success) {
      throw new BadRequestError(
        'BAD_BODY',
        'the body must be a JSON array of outpoints, or {"outpoints": […]}; each may carry :seq',
      )
    }
    const texts = 'outpoints' in asked.data ? asked.data.outpoints : asked.data
    if (texts.length > maxPointers) throw new TooLargeError(`at most ${maxPointers} outpoints at once`)
    const references = [...new Set(texts)].map((text) => ({ text, reference: parseContentReference(text) }))
    response.set('Cache-Control', CACHE.revalidate).set('Content-Type', JSON_TYPE)
    await sendChunks(response, { pieces: recordsOf(options, references) })
  }
}

/** Of many, what is blocked is not there. */
async function servedRecord(
  options: MetadataOptions,
  reference: ReturnType<typeof parseContentReference>,
): Promise<MetadataRecord | undefined> {
  try {
    return await metadataRecord(options, reference)
  } catch (error) {
    if (error instanceof BlockedError) return undefined
    throw error
  }
}

/** Of all records of an answer together, so many times the MAP that one of them shows: most have some hundred bytes. */
const MAPS_AN_ANSWER = 16

/** How much text is gathered before it is sent: records are short, and there are many. */
const CHARACTERS_A_PIECE = 64 * 1024

/** An object of records as JSON, some at a time: a record has as much MAP as strangers wrote. */
async function* recordsOf(
  options: MetadataOptions,
  references: { text: string; reference: ReturnType<typeof parseContentReference> }[],
): AsyncGenerator<string> {
  const slices = new Slices()
  let piece = ''
  let mapBytes = options.maxMapBytes * MAPS_AN_ANSWER
  for (const [index, { text, reference }] of references.entries()) {
    const maxMapBytes = Math.min(options.maxMapBytes, mapBytes)
    const record = await servedRecord({ ...options, maxMapBytes }, reference)
    if (record !== undefined) mapBytes = Math.max(mapBytes - JSON.stringify(record.map).length, 0)
    // The embedded store answers at once, and everything else would wait for the last of them.
    await slices.rest()
    piece += `${index === 0 ? '{' : ','}${JSON.stringify(text)}:${JSON.stringify(record ?? null)}`
    if (piece.length < CHARACTERS_A_PIECE) continue
    yield piece
    piece = ''
  }
  yield references.length === 0 ? '{}' : `${piece}}`
}
