import type { ErrorCode } from '../http/errors.js'
import {
  CORS_HEADERS,
  type HeaderName,
  PARAMETERS,
  type ParameterName,
  type SchemaName,
} from './components.js'

/** A JSON Schema (2020-12). */
export type Schema = Readonly<Record<string, unknown>>

interface Reference {
  $ref: string
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  description: string
  required?: boolean
  schema?: Schema
  content?: Content
}

/** Bodies by their media types. */
type Content = Record<string, { schema: Schema }>

interface Answer {
  description: string
  headers?: Record<string, Reference>
  content?: Content
}

/** What one method of one path takes and answers: an operation of OpenAPI 3.1, in the fields that are used here. */
export interface Operation {
  /** One in the document. */
  operationId: string
  summary: string
  description?: string
  tags: [string]
  /** Who may ask; anybody where it is absent. */
  security?: [{ operator: [] }]
  parameters?: (Parameter | Reference)[]
  requestBody?: { description: string; required: true; content: Content }
  /** By status; `default` is our fault (500 `INTERNAL`), where something can go wrong inside. */
  responses: Record<string, Answer>
}

export interface PathItem {
  get?: Operation
  head?: Operation
  post?: Operation
}

/** What stands at which path template. */
export type Paths = Record<string, PathItem>

export function schema(name: SchemaName): Schema {
  return { $ref: `#/components/schemas/${name}` }
}

export function parameters(...names: ParameterName[]): Reference[] {
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }))
}

/** Headers that no error has: they speak of the body that is not sent. */
const DESCRIBING: readonly HeaderName[] = ['ETag', 'Accept-Ranges', 'Cache-Control']

/** How bytes of whatever type are answered, whole, in part or not again; `called` is what they are to a reader. */
export function bytesAnswers({
  called,
  headers,
}: {
  called: string
  headers: readonly HeaderName[]
}): Operation['responses'] {
  // As inscribed: nobody here knows which type, nor what is in it.
  const content = { '*/*': {} }
  return {
    '200': answer({ description: called, headers: ['Content-Length', ...headers], content }),
    '206': answer({
      description: 'The part that was asked for.',
      headers: ['Content-Length', 'Content-Range', ...headers],
      content,
    }),
    '304': answer({ description: 'It is what whoever asks has.', headers }),
    '412': preconditionFailed(headers.filter((name) => !DESCRIBING.includes(name))),
  }
}

/** How a proof is answered, whole or not again. */
export function proofAnswers(): Operation['responses'] {
  const headers: HeaderName[] = [
    'Cache-Control',
    'ETag',
    'X-Content-Type-Options',
    'Cross-Origin-Resource-Policy',
  ]
  return {
    '200': answer({
      description: 'An Outpoint BEEF (BRC-158), to be checked offline.',
      headers: ['Content-Length', ...headers],
      content: { 'application/octet-stream': {} },
    }),
    '304': answer({ description: 'It is what whoever asks has.', headers }),
    '412': preconditionFailed(['X-Content-Type-Options', 'Cross-Origin-Resource-Policy']),
  }
}

/** A parameter of the path that stands in a template by its component's name. */
export function inPath(name: ParameterName): string {
  return `{${PARAMETERS[name].name}}`
}

/**
 * An answer with these headers and with those that every answer has; `content` has a schema for each media type.
 *
 * @param options.shut Whether pages of other origins may not read it: then it has none but these.
 */
export function answer({
  description,
  headers = [],
  content,
  shut = false,
}: {
  description: string
  headers?: readonly HeaderName[]
  content?: Record<string, Schema>
  shut?: boolean
}): Answer {
  const referred = [...headers, 'X-Request-Id', ...(shut ? [] : CORS_HEADERS)].map((name) => [
    name,
    { $ref: `#/components/headers/${name}` },
  ])
  const bodies = Object.entries(content ?? {}).map(([type, body]) => [type, { schema: body }])
  return {
    description,
    headers: Object.fromEntries(referred),
    ...(content && { content: Object.fromEntries(bodies) }),
  }
}

/** An error in the one shape of all routes, with the codes that it can have. */
export function errorAnswer({
  codes,
  description,
  headers = [],
  shape = 'Error',
  shut,
}: {
  codes: readonly [ErrorCode, ...ErrorCode[]]
  description: string
  headers?: readonly HeaderName[]
  shape?: 'Error' | 'OverlayError' | 'ConflictError'
  shut?: boolean
}): Answer {
  const narrowed = { type: 'object', properties: { code: { type: 'string', enum: codes } }, ...schema(shape) }
  return answer({
    description,
    headers: ['Cache-Control', ...headers],
    content: { 'application/json': narrowed },
    ...(shut && { shut }),
  })
}

/** What `If-Match` does not ask for. */
export function preconditionFailed(headers: readonly HeaderName[] = []): Answer {
  return errorAnswer({
    codes: ['PRECONDITION_FAILED'],
    description: 'There is something else than `If-Match` asks for.',
    headers,
  })
}

/** What leads to something that the operator has blocked. */
export function blockedAnswer(description: string, shape?: 'OverlayError'): Answer {
  return errorAnswer({ codes: ['BLOCKED'], description, ...(shape && { shape }) })
}

/** What went wrong inside. */
export function internal(shape?: 'OverlayError'): Answer {
  return errorAnswer({
    codes: ['INTERNAL'],
    description: '500: our fault. It is logged here, and not told.',
    ...(shape && { shape }),
  })
}

/** Paths below each prefix. An operation has one id: below the second prefix and on, with a number behind it. */
export function mounted(paths: Paths, prefixes: readonly string[]): Paths {
  const below = prefixes.flatMap((prefix, at) =>
    Object.entries(paths).map(([path, item]) => [prefix + path, at === 0 ? item : numbered(item, at + 1)]),
  )
  return Object.fromEntries(below)
}

function numbered(item: PathItem, number: number): PathItem {
  const operations = Object.entries(item).map(([method, operation]: [string, Operation]) => [
    method,
    { ...operation, operationId: `${operation.operationId}${number}` },
  ])
  return Object.fromEntries(operations)
}
