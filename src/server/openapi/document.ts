import { z } from 'zod'
import type { Profile } from '../../../backend/src/protocol/profile.js'
import type { ErrorCode } from '../../gateway/http/errors.js'
import { HEADERS, type HeaderName, type Operation, TAGS } from '../../gateway/http/operation.js'
import { errorBodies } from '../../gateway/http/schemas.js'
import { GATEWAY_OPERATIONS } from '../../gateway/openapi/operations.js'
import { isAboutHost } from '../http/readiness.js'
import { SERVER_OPERATIONS } from './operations.js'

/** A JSON Schema (2020-12). */
type JsonSchema = Readonly<Record<string, unknown>>
/** Bodies by their media types. */
type Content = Record<string, { schema: JsonSchema }>
/** What a header or a parameter holds: text as the schema says, or JSON. */
type Value = { schema: JsonSchema; content?: never } | { content: Content; schema?: never }

export type ParameterObject = Value & {
  name: string
  in: 'path' | 'query' | 'header'
  description: string
  required?: true
}

interface ResponseObject {
  description: string
  headers: Record<string, { $ref: string }>
  content?: Content
}

export interface OperationObject {
  operationId: string
  tags: [string]
  summary: string
  description?: string
  /** Who may send it; absent for everyone. */
  security?: [{ operator: [] }]
  parameters: ParameterObject[]
  requestBody?: { description: string; required: true; content: Content }
  /** By status. `default` is our fault: 500 `INTERNAL`. */
  responses: Record<string, ResponseObject>
}

export type PathItem = Partial<Record<'get' | 'head' | 'post', OperationObject>>

/** An OpenAPI 3.1 document, in the fields that are used here. */
export interface OpenapiDocument {
  openapi: '3.1.1'
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string; description: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, PathItem>
  components: {
    headers: Record<string, Value & { description: string }>
    schemas: Record<string, JsonSchema>
    securitySchemes: Record<string, JsonSchema>
  }
}

const DESCRIPTION = `Names that are mined, and content that lives on the chain, as this host has admitted them.

Pages of any origin may send requests: preflights are answered on every path (204), except those of the operator.
Every error is \`{"error": "<sentence>", "code": "<CODE>"}\` and must not be stored; a path that is not described here is 404 \`NOT_FOUND\`.
Before any route is chosen, a path may be too long (414 \`TOO_LARGE\`), or the head of a request (431); a request may arrive too slowly (408 \`BAD_BODY\`) or be malformed (400, 417).

Compressed bodies are refused (415 \`UNSUPPORTED_ENCODING\`) unless the operator accepts them. An upload may be aborted if there are too many at once (503 \`NOT_READY\` with \`Retry-After\`), and nothing is written while the store is full (503 \`STORE_FULL\`).

The requests of a client are counted, except those from the machine itself and those to \`/health\`: \`RateLimit\` says how many are left.`

/** Describes every route that the server has under a profile. */
export function openapiDocument({
  profile,
  version,
}: {
  profile: Profile
  version: string
}): OpenapiDocument {
  const writer = new DocumentWriter()
  const { gatewayPrefixes, namesPrefixes } = profile
  const { content, names, others } = GATEWAY_OPERATIONS
  writer.add(content, [''])
  writer.add(names, namesPrefixes)
  writer.add(others, gatewayPrefixes)
  writer.add(SERVER_OPERATIONS, [''])
  const headers = Object.entries(HEADERS).map(([name, schema]) => [name, writer.described(schema)])
  return {
    openapi: '3.1.1',
    info: {
      title: 'minetree',
      version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The host that serves this document.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: writer.paths,
    components: {
      headers: Object.fromEntries(headers),
      schemas: writer.schemas,
      securitySchemes: {
        operator: { type: 'http', scheme: 'bearer', description: 'The `ADMIN_TOKEN` of the settings.' },
      },
    },
  }
}

/** The usual status of each code. */
const STATUSES: Record<ErrorCode, string> = {
  BAD_OUTPOINT: '400',
  BAD_SEQUENCE: '400',
  BAD_NAME: '400',
  BAD_BODY: '400',
  NESTING_TOO_DEEP: '400',
  UNAUTHORIZED: '401',
  NOT_FOUND: '404',
  TAKEN: '404',
  CONFLICT: '409',
  PRECONDITION_FAILED: '412',
  TOO_LARGE: '413',
  UNSUPPORTED_ENCODING: '415',
  RANGE_NOT_SATISFIABLE: '416',
  RATE_LIMITED: '429',
  BLOCKED: '451',
  INTERNAL: 'default',
  NOT_READY: '503',
  STORE_FULL: '503',
}

/** Headers that belong to the body, and errors do not have. */
const OF_BODY: readonly HeaderName[] = ['Content-Length', 'ETag', 'Accept-Ranges', 'Cache-Control']

/** Ranges are of GET alone (RFC 9110 14.2). */
const OF_RANGES = { statuses: ['206', '416'], parameters: ['Range', 'If-Range'] }

const optional = (description: string) => z.string().optional().describe(description)
const RANGE_HEADERS = z.object({
  Range: optional('`bytes=`: one range is answered with that part, several with the whole body.'),
  'If-Range': optional('An ETag: if it is not the current one, `Range` is ignored.'),
})
const PRECONDITION_HEADERS = z.object({
  'If-Match': optional('ETags: if none of them is the current one, 412.'),
  'If-None-Match': optional('ETags: if one of them is the current one, 304.'),
})

/** Collects paths, and the schemas that they refer to. */
class DocumentWriter {
  readonly paths: Record<string, PathItem> = {}
  readonly schemas: Record<string, JsonSchema> = {}

  /** Adds operations below each prefix. From the second prefix on, their ids have a number, as ids are unique. */
  add(operations: readonly Operation[], prefixes: readonly string[]): void {
    for (const [at, prefix] of prefixes.entries()) {
      for (const operation of operations) {
        const [method, path] = operation.route.split(' ') as ['GET' | 'POST', string]
        const template = path === '/' ? prefix : prefix + path
        const id = at === 0 ? operation.id : `${operation.id}${at + 1}`
        const described = this.operation(template, { ...operation, id })
        this.paths[template] = {
          ...this.paths[template],
          ...(method === 'GET' ? { get: described, head: headOf(described) } : { post: described }),
        }
      }
    }
  }

  /** A header: what it is, and what it holds. */
  described(schema: z.ZodType): Value & { description: string } {
    const { description = '' } = schema
    const { description: _, ...body } = this.schema(schema, 'output')
    const isText = !(schema instanceof z.ZodRecord || schema instanceof z.ZodArray)
    return {
      description,
      ...(isText ? { schema: body } : { content: { 'application/json': { schema: body } } }),
    }
  }

  private operation(template: string, operation: Operation): OperationObject {
    const { id, tag, summary, description, body, answer } = operation
    const has = (name: HeaderName): boolean => answer.headers?.includes(name) === true
    return {
      operationId: id,
      tags: [tag],
      summary,
      ...(description !== undefined && { description }),
      ...(tag === 'operator' && { security: [{ operator: [] }] }),
      parameters: [
        ...this.parameters('path', operation.params),
        ...this.parameters('query', operation.query),
        ...this.parameters('header', operation.headers),
        ...this.parameters('header', has('Accept-Ranges') ? RANGE_HEADERS : undefined),
        ...this.parameters('header', has('ETag') ? PRECONDITION_HEADERS : undefined),
      ],
      ...(body && {
        requestBody: { description: body.description, required: true, content: this.content(body, 'input') },
      }),
      responses: { ...this.answers(operation), ...this.errors(template, operation) },
    }
  }

  private parameters(place: ParameterObject['in'], object: z.ZodObject | undefined): ParameterObject[] {
    return Object.entries(object?.shape ?? {}).map(([name, schema]) => {
      const isOptional = (schema as z.ZodType).safeParse(undefined).success
      return {
        name,
        in: place,
        ...this.described(schema as z.ZodType),
        ...(!isOptional && { required: true }),
      }
    })
  }

  private answers({ tag, answer, otherAnswers = {} }: Operation): OperationObject['responses'] {
    const { headers = [] } = answer
    const described: Record<string, Operation['answer']> = { 200: answer, ...otherAnswers }
    if (headers.includes('ETag')) {
      const kept = headers.filter((name) => name !== 'Content-Length')
      described[304] = { description: 'The client has the current body.', headers: kept }
    }
    if (headers.includes('Accept-Ranges'))
      described[206] = {
        ...answer,
        description: 'The requested range.',
        headers: ['Content-Range', ...headers],
      }
    const responses = Object.entries(described).map(
      ([status, { description, headers: own = [], ...body }]) => {
        const content = body.json || body.types ? { content: this.content(body, 'output') } : {}
        return [status, { description, headers: headersOf(tag, own), ...content }]
      },
    )
    return Object.fromEntries(responses)
  }

  private errors(template: string, operation: Operation): OperationObject['responses'] {
    const { tag, errors = {}, body, answer } = operation
    const headers = answer.headers ?? []
    const isWatched = isAboutHost(template)
    const all: Record<string, string> = {
      ...(!isWatched && { RATE_LIMITED: 'The client has sent more requests than the operator allows.' }),
      ...(!isWatched && { NOT_READY: 'The index is being rebuilt; try again later.' }),
      ...(body && { UNSUPPORTED_ENCODING: 'The body is compressed; send it as `Accept-Encoding` says.' }),
      ...(headers.includes('ETag') && { PRECONDITION_FAILED: '`If-Match` names another ETag.' }),
      ...(headers.includes('Accept-Ranges') && {
        RANGE_NOT_SATISFIABLE: 'The body has no byte in that range.',
      }),
      ...errors,
    }
    const kept = headers.filter((name) => !OF_BODY.includes(name))
    const isRetried = 'STORE_FULL' in errors || 'NOT_READY' in errors
    const extra: Partial<Record<string, readonly HeaderName[]>> = {
      401: ['WWW-Authenticate'],
      412: kept,
      415: ['Accept-Encoding'],
      416: ['Content-Range', ...kept],
      429: ['RateLimit', 'RateLimit-Policy', 'Retry-After'],
      503: isRetried && !isWatched ? ['Retry-After'] : [],
    }
    const byStatus = new Map<string, [code: ErrorCode, text: string][]>()
    for (const [key, text] of Object.entries(all)) {
      const [code, status] = key.split(' ').reverse() as [ErrorCode, string?]
      const at = status ?? STATUSES[code]
      byStatus.set(at, [...(byStatus.get(at) ?? []), [code, text]])
    }
    const shape = errorBodies[tag === 'overlay' || tag === 'operator' ? 'OverlayError' : 'Error']
    const responses = [...byStatus].map(([status, codes]) => {
      const schema = this.schema(status === '409' ? errorBodies.ConflictError : shape, 'output')
      const narrowed = {
        type: 'object',
        properties: { code: { enum: codes.map(([code]) => code) } },
        ...schema,
      }
      return [
        status,
        {
          description: codes.map(([code, text]) => `\`${code}\`: ${text}`).join('\n'),
          headers: headersOf(tag, ['Cache-Control', ...(extra[status] ?? [])]),
          content: { 'application/json': { schema: narrowed } },
        },
      ]
    })
    return Object.fromEntries(responses)
  }

  private content(
    { json, types = [] }: Pick<Operation['answer'], 'json' | 'types'>,
    io: 'input' | 'output',
  ): Content {
    // Bytes have no schema.
    const bodies = types.map((type) => [type, { schema: type.startsWith('text/') ? { type: 'string' } : {} }])
    return {
      ...(json && { 'application/json': { schema: this.schema(json, io) } }),
      ...Object.fromEntries(bodies),
    }
  }

  /** As JSON Schema; what has an id stands among the components. */
  private schema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const text = JSON.stringify(z.toJSONSchema(schema, { io })).replaceAll(
      '"#/$defs/',
      '"#/components/schemas/',
    )
    const { $schema, $defs, ...body } = JSON.parse(text) as Record<string, JsonSchema>
    Object.assign(this.schemas, $defs)
    return body
  }
}

/** With those of every answer. Pages of other origins may not read what is for the operator. */
function headersOf(tag: Operation['tag'], names: readonly HeaderName[]): ResponseObject['headers'] {
  const shared: HeaderName[] = ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers']
  const all: HeaderName[] = [...names, 'X-Request-Id', ...(tag === 'operator' ? [] : shared)]
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** Every GET is a HEAD as well: the same without a body, and without ranges. */
function headOf({ operationId, parameters, responses, ...operation }: OperationObject): OperationObject {
  const bodiless = Object.entries(responses)
    .filter(([status]) => !OF_RANGES.statuses.includes(status))
    .map(([status, { content: _, ...head }]) => [status, head])
  return {
    ...operation,
    operationId: `${operationId}Head`,
    parameters: parameters.filter(({ name }) => !OF_RANGES.parameters.includes(name)),
    responses: Object.fromEntries(bodiless),
  }
}
