import type { RequestHandler } from 'express'
import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import type { Dependency } from '../../../backend/src/graph/dependencies.js'
import { type ContentReference, parseContentReference } from '../../../backend/src/protocol/outpoint.js'
import { outpointOf } from '../content/content-root.js'
import { CACHE } from '../http/caching.js'
import { AnswerError, unknownHere } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { jsonChunks } from '../http/json-chunks.js'
import { jsonRoute } from '../http/json-route.js'
import { described, ORIGIN_PENDING, type Routes, STORE_ERRORS } from '../http/operation.js'
import { askedReference, MAX_ASKED, pointerIn, validateList } from '../http/schemas.js'
import { JSON_TYPE, sendChunks } from '../http/send-body.js'
import {
  dependenciesOfRecord,
  type MetadataOptions,
  metadataRecord,
  metadataRecordShape,
} from './metadata-record.js'

/** Room for 100 pointers of at most 96 characters, with quotes and spaces. */
const MAX_BODY_BYTES = 64 * 1024

export function metadataRoutes(options: GatewayParts): Routes {
  return routes({
    metadata: single(options),
    metadataOfMany: [options.bodies.json({ limit: MAX_BODY_BYTES }), bulk(options)],
  })
}

function single(options: GatewayParts): RequestHandler<Record<string, string>> {
  return jsonRoute(options, (request) => {
    const reference = parseContentReference(pointerIn(request))
    const record = metadataRecord(options, reference)
    if (record !== undefined) return { value: record, dependsOn: dependenciesOfRecord(record) }
    throw unknownHere(
      'this store has no such output or step, or the origin is unknown here',
      outpointOf(options.store, reference),
    )
  })
}

const references = z.array(askedReference).max(MAX_ASKED.records)
const pointers = z.union([references, z.object({ outpoints: references })])

function bulk(options: ListOptions): RequestHandler {
  return async (request, response) => {
    const asked = validateList(
      pointers,
      request.body,
      'the body must be a JSON array of outpoints or {"outpoints": […]}; each outpoint may end in :seq',
    )
    const texts = 'outpoints' in asked ? asked.outpoints : asked
    const references = [...new Set(texts)].map((text) => ({ text, reference: parseContentReference(text) }))
    response.set('Cache-Control', CACHE.revalidate).set('Content-Type', JSON_TYPE)
    await sendChunks(response, { chunks: recordsOf(options, references) })
  }
}

type ListOptions = MetadataOptions & Pick<GatewayParts, 'responses'>

interface ListedReference {
  text: string
  reference: ContentReference
}

interface ListedRecord {
  json: string
  mapLength: number
  dependsOn: readonly Dependency[]
  weight: number
}

/** The record of a reference with limited MAP: most have less than the limit, and may be cached. */
function listedRecord(
  { responses, ...options }: ListOptions,
  { text, reference }: ListedReference,
  maxMapBytes: number,
): ListedRecord | undefined {
  const read = (): ListedRecord | undefined => {
    const record = metadataRecord({ ...options, maxMapBytes }, reference)
    if (record === undefined) return undefined
    const json = JSON.stringify(record)
    const mapLength = JSON.stringify(record.map).length
    return { json, mapLength, dependsOn: dependenciesOfRecord(record), weight: json.length }
  }
  return maxMapBytes < options.maxMapBytes
    ? options.store.consistent(read)
    : responses.cachedBy(`record:${text}`, read)
}

/** Lists leave out blocked and pending outputs. */
function unlessHidden<Found>(read: () => Found): Found | undefined {
  try {
    return unlessBlocked(read)
  } catch (error) {
    if (error instanceof AnswerError && error.code === 'ORIGIN_PENDING') return undefined
    throw error
  }
}

/** The MAP in one response is limited to that of this many full records: most have some hundred bytes. */
const MAPS_PER_ANSWER = 16

/** An object of records as JSON, a few at a time: a record has as much MAP as strangers wrote. */
function recordsOf(options: ListOptions, references: ListedReference[]): AsyncGenerator<string> {
  let mapBytes = options.maxMapBytes * MAPS_PER_ANSWER
  return jsonChunks(references, '{}', (each) => {
    const shown = Math.min(options.maxMapBytes, mapBytes)
    const record = unlessHidden(() => listedRecord(options, each, shown))
    if (record !== undefined) mapBytes = Math.max(mapBytes - record.mapLength, 0)
    return `${JSON.stringify(each.text)}:${record?.json ?? 'null'}`
  })
}

const routes = described({
  tag: 'content',
  errors: STORE_ERRORS,
  operations: {
    metadata: {
      route: 'GET /metadata/{reference}',
      pattern: /^\/metadata\/[^/]+$/,
      summary: 'Metadata of an output, or of an ordinal at a step',
      params: z.object({ reference: askedReference }),
      answer: { description: 'The metadata.', headers: ['ETag'], json: metadataRecordShape },
      errors: {
        BAD_OUTPOINT: 'The path does not end with an outpoint.',
        BAD_SEQUENCE: 'The sequence is not a number.',
        NOT_FOUND: 'The output or step is not in this store.',
        ORIGIN_PENDING,
        BLOCKED: 'The operator has blocked the output, its content, or the name whose origin it is.',
      },
    },
    metadataOfMany: {
      route: 'POST /metadata',
      summary: 'Metadata of several outputs',
      body: { description: 'At most 100 pointers, each with or without a sequence.', json: pointers },
      answer: {
        description:
          'The metadata of each pointer, keyed by the pointer as sent; null if there is none or it is blocked.',
        json: z.record(askedReference, metadataRecordShape.nullable()),
      },
      errors: {
        BAD_BODY: 'The body is not a list of strings.',
        BAD_OUTPOINT: 'A pointer is not an outpoint; the error quotes it.',
        BAD_SEQUENCE: 'A sequence is not a number; the error quotes it.',
        TOO_LARGE: 'More than 100 pointers, or a body over 64 KiB.',
      },
    },
  },
})
