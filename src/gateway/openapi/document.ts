import { z } from 'zod'
import { VERSION } from '../../../backend/src/graph/service-metadata.js'
import { isText } from '../http/compression.js'
import { ERROR_STATUSES, type ErrorCode } from '../http/errors.js'
import type { RouteGroup } from '../http/operation.js'
import { HEADERS, type HeaderName, type Operation, type OperationGroup, TAGS } from '../http/operation.js'
import { errorBodies, optionalText } from '../http/schemas.js'

/** A JSON Schema (2020-12). */
type JsonSchema = Record<string, unknown>
type Content = Record<string, { schema: JsonSchema }>
/** A text described by a schema, or JSON. */
type DescribedText = { description: string; schema?: JsonSchema; content?: Content }
type IO = 'input' | 'output'
type Place = 'path' | 'query' | 'header'
type Responses = Record<string, { description: string; headers: Record<string, unknown>; content?: Content }>

export interface OperationObject {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  /** Required credentials; absent if there are none. */
  security?: JsonSchema[]
  parameters: (DescribedText & { name: string; in: Place; required: boolean })[]
  requestBody?: { description: string; required: true; content: Content }
  /** By status; `default` is 500. */
  responses: Responses
}

export type PathItem = Partial<Record<'get' | 'head' | 'post', OperationObject>>

export interface OpenapiDocument {
  openapi: '3.1.1'
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string; description: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, PathItem>
  components: Record<'schemas' | 'securitySchemes', Record<string, JsonSchema>> & {
    headers: Record<string, DescribedText>
  }
}

const DESCRIPTION = `Mined names and on-chain content, as admitted by this host.

`
const OF_SERVER = `Pages of any origin may call this API: preflights return 204 on every path except those of the operator.
Errors are \`{"error": "<sentence>", "code": "<CODE>"}\`, or a page for requests that prefer \`text/html\`, and must not be cached. Paths that are not listed here are pages of the explorer or return 404 \`NOT_FOUND\`; other methods return 405 \`METHOD_NOT_ALLOWED\` with \`Allow\`.
A request may also be refused before routing: its path is too long (414 \`TOO_LARGE\`), its headers are too large (431), it arrives too slowly (408 \`BAD_BODY\`), or it is malformed (400, 417).

Compressed bodies are refused (415 \`UNSUPPORTED_ENCODING\`) unless the operator accepts them. An upload may be aborted if there are too many at once (503 \`NOT_READY\` with \`Retry-After\`). A submission while the store is full (503 \`STORE_FULL\`) may or may not be stored once there is space.

Requests are rate-limited per client, except those from the local machine and those to \`/health\`. \`RateLimit\` says how many are left.`
const OF_HOST = `The routes that minetree adds to an overlay node. All other routes, rate limits and refusals before routing belong to the node.
Errors are \`{"error": "<sentence>", "code": "<CODE>"}\`, or a page for requests that prefer \`text/html\` if this host has pages, and must not be cached. Other methods on these paths return 405 \`METHOD_NOT_ALLOWED\` with \`Allow\`, except on paths of the overlay. Compressed bodies are refused (415 \`UNSUPPORTED_ENCODING\`).`

export interface DocumentOptions {
  groups: readonly RouteGroup[]
  path: string
  /** Whether the host is our server, which has its own limits, request ids and refusals before routes. */
  isServer: boolean
  hasCors: boolean
}

export function openapiDocument({ groups, path, isServer, hasCors }: DocumentOptions): OpenapiDocument {
  const writer = new DocumentWriter({ isServer, hasCors })
  for (const group of groups) writer.add(group)
  const headers = Object.entries(HEADERS).map(([name, schema]) => [name, writer.text(schema)])
  const operator = { type: 'http', scheme: 'bearer', description: 'The `ADMIN_TOKEN` of the settings.' }
  const tags = groups.flatMap(({ operations }) => operations.map(({ tag }) => tag))
  return {
    openapi: '3.1.1',
    info: {
      title: 'minetree',
      version: VERSION,
      description: DESCRIPTION + (isServer ? OF_SERVER : OF_HOST),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: path || '/', description: 'The host that serves this document.' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => (tags as string[]).includes(name))
      .map(([name, description]) => ({ name, description })),
    paths: writer.paths,
    components: {
      headers: Object.fromEntries(headers.filter(([name]) => writer.headers.has(name as HeaderName))),
      schemas: writer.schemas,
      securitySchemes: { ...(tags.includes('operator') && { operator }) },
    },
  }
}

/** Codes with status 503 that say when to retry. */
const RETRIED: readonly ErrorCode[] = ['NOT_READY', 'STORE_FULL', 'NOT_CAUGHT_UP']

/** Headers that describe a body, which errors do not have. */
const DIGESTS: readonly HeaderName[] = ['Repr-Digest', 'Content-Digest']
const OF_BODY: readonly HeaderName[] = ['Content-Length', 'ETag', 'Accept-Ranges', ...DIGESTS]

/** Headers that let pages of other origins read an answer. */
const OF_CORS: readonly HeaderName[] = [
  'Access-Control-Allow-Origin',
  'Access-Control-Allow-Private-Network',
  'Access-Control-Expose-Headers',
]

const PRECONDITIONS = z.object({
  'If-Match': optionalText('ETags. If none matches the current one, the answer is 412.'),
  'If-None-Match': optionalText('ETags. If one matches the current one, the answer is 304.'),
})
const RANGES = z.object({
  Range: optionalText(
    '`bytes=`: one range returns that part; up to eight ranges that do not overlap return multipart; anything else returns the whole body.',
  ),
  'If-Range': optionalText('An ETag. If it is not the current one, `Range` is ignored.'),
})
const RANGE_STATUSES = ['206', '416']
/** Statuses of requests that reach no route; their errors are JSON for everybody. */
const BEFORE_ROUTES = ['414', '431']
const VARIES: readonly HeaderName[] = ['Vary']

function isTextual({ json, types = [] }: Operation['answer']): boolean {
  return json !== undefined || types.some((type) => isText(type))
}

function ofHead(key: string): boolean {
  return BEFORE_ROUTES.some((status) => key.startsWith(status))
}

type Group = Omit<OperationGroup, 'operations'> & Pick<RouteGroup, 'needs'>

class DocumentWriter {
  readonly paths: Record<string, PathItem> = {}
  readonly schemas: Record<string, JsonSchema> = {}
  readonly headers = new Set<HeaderName>()
  /** Converted schemas: many operations share one, and converting takes a while. */
  private readonly known = {
    input: new Map<z.ZodType, JsonSchema>(),
    output: new Map<z.ZodType, JsonSchema>(),
  }

  constructor(private readonly host: Pick<DocumentOptions, 'isServer' | 'hasCors'>) {}

  /** Adds routes below each prefix. From the second prefix on, ids end with its number to stay unique. */
  add({ prefixes, operations: groups, needs }: RouteGroup): void {
    for (const [at, prefix] of prefixes.entries()) {
      for (const { operations, ...group } of groups) {
        for (const [id, operation] of Object.entries(operations)) {
          const [method = '', path = ''] = operation.route.split(' ')
          const template = prefix + (path === '/' ? '' : path)
          const operationId = at === 0 ? id : `${id}${at + 1}`
          const described = { operationId, ...this.operation(operation, { ...group, needs }) }
          const item = method === 'GET' ? { get: described, head: headOf(described) } : { post: described }
          this.paths[template] = { ...this.paths[template], ...item }
        }
      }
    }
  }

  text(schema: z.ZodType): DescribedText {
    const { description = '', ...body } = this.schema(schema, 'output')
    const isJson = [z.ZodRecord, z.ZodArray, z.ZodObject].some((kind) => schema instanceof kind)
    const held = isJson ? { content: { 'application/json': { schema: body } } } : { schema: body }
    return { description: String(description), ...held }
  }

  private operation(operation: Operation, group: Group): Omit<OperationObject, 'operationId'> {
    const { summary, description, body, answer } = operation
    const { headers = [] } = answer
    return {
      tags: [group.tag],
      ...(group.needs === 'operator' && { security: [{ operator: [] }] }),
      summary,
      ...(description !== undefined && { description }),
      parameters: [
        ...this.parameters('path', operation.params),
        ...this.parameters('query', operation.query),
        ...this.parameters('header', operation.headers),
        ...this.parameters('header', headers.includes('Accept-Ranges') ? RANGES : undefined),
        ...this.parameters('header', headers.includes('ETag') ? PRECONDITIONS : undefined),
      ],
      ...(body && {
        requestBody: { description: body.description, required: true, content: this.content(body, 'input') },
      }),
      responses: { ...this.answers(operation, group), ...this.errors(operation, group) },
    }
  }

  private parameters(place: Place, object: z.ZodObject = z.object()): OperationObject['parameters'] {
    return Object.entries(object.shape as Record<string, z.ZodType>).map(([name, schema]) => {
      return { name, in: place, required: !schema.safeParse(undefined).success, ...this.text(schema) }
    })
  }

  private answers({ answer, otherAnswers }: Operation, { tag }: Group): Responses {
    const { headers = [], description: _, ...body } = answer
    const all: Record<string, Operation['answer']> = { 200: answer, ...otherAnswers }
    if (headers.includes('Accept-Ranges'))
      all[206] = {
        description: 'The requested range, or several as `multipart/byteranges`, without Content-Range.',
        headers: ['Content-Range', ...headers.filter((name) => name !== 'Content-Digest')],
        ...body,
      }
    if (headers.includes('ETag')) {
      const kept = headers.filter((name) => name !== 'Content-Length' && !DIGESTS.includes(name))
      all[304] = { description: 'The cached body of the client is current.', headers: kept }
    }
    return mapped(all, ({ description, headers: own = [], ...described }) => {
      const content = this.content(described, 'output')
      const hasBody = Object.keys(content).length > 0
      const cache: HeaderName[] = tag === 'overlay' ? [] : ['Cache-Control']
      // The answer may be compressed.
      if (own.includes('ETag') && isTextual(answer)) cache.push('Vary')
      return { description, headers: this.headersOf(tag, [...cache, ...own]), ...(hasBody && { content }) }
    })
  }

  private errors({ body, answer, errors }: Operation, { tag, needs, errors: shared }: Group): Responses {
    const { headers = [] } = answer
    const { isServer } = this.host
    // Monitoring routes are neither limited nor refused.
    const isWatched = needs === 'process'
    const own = { ...shared, ...errors }
    const all: Record<string, string> = {
      ...(isServer &&
        !isWatched && { RATE_LIMITED: 'The client has sent more requests than the operator allows.' }),
      ...(!isWatched && { NOT_READY: 'The index is being rebuilt; try again later.' }),
      ...(body && { UNSUPPORTED_ENCODING: 'The body is compressed; send it as `Accept-Encoding` says.' }),
      ...(headers.includes('ETag') && { PRECONDITION_FAILED: 'No ETag of `If-Match` is the current one.' }),
      ...(headers.includes('Accept-Ranges') && {
        RANGE_NOT_SATISFIABLE: 'The range is beyond the end of the body.',
      }),
      ...Object.fromEntries(Object.entries(own).filter(([key]) => isServer || !ofHead(key))),
    }
    const kept = headers.filter((name) => !OF_BODY.includes(name))
    const saysWhen = RETRIED.some((code) => code in all)
    const further: Record<string, readonly HeaderName[]> = {
      401: ['WWW-Authenticate'],
      404: [
        ...('ORIGIN_PENDING' in own ? (['Retry-After'] as const) : []),
        ...('NOT_CAUGHT_UP' in own && tag !== 'transactions' ? (['X-As-Of'] as const) : []),
      ],
      412: kept,
      415: 'UNSUPPORTED_ENCODING' in all ? ['Accept-Encoding'] : [],
      416: ['Content-Range', ...kept],
      429: ['RateLimit', 'RateLimit-Policy', 'Retry-After'],
      503: saysWhen ? ['Retry-After'] : [],
    }
    const statuses: Record<string, { code: ErrorCode; meaning: string }[]> = {}
    for (const [key, meaning] of Object.entries(all)) {
      const [code, status] = key.split(' ').reverse() as [ErrorCode, string?]
      const at = code === 'INTERNAL' ? 'default' : (status ?? ERROR_STATUSES[code])
      statuses[at] = [...(statuses[at] ?? []), { code, meaning }]
    }
    const shape = tag === 'overlay' || tag === 'operator' ? 'OverlayError' : 'Error'
    return mapped(statuses, (codes, status) => {
      const body = this.schema(errorBodies[status === '409' ? 'ConflictError' : shape], 'output')
      const code = { enum: codes.map((each) => each.code) }
      return {
        description: codes.map((each) => `\`${each.code}\`: ${each.meaning}`).join('\n'),
        headers: this.headersOf(tag, [
          'Cache-Control',
          ...(BEFORE_ROUTES.includes(status) ? [] : VARIES),
          ...(further[status] ?? []),
        ]),
        content: { 'application/json': { schema: { type: 'object', properties: { code }, ...body } } },
      }
    })
  }

  private content({ json, types = [] }: Pick<Operation['answer'], 'json' | 'types'>, io: IO): Content {
    // Bytes have no schema.
    const bodies = types.map((type) => [type, { schema: type.startsWith('text/') ? { type: 'string' } : {} }])
    return {
      ...(json && { 'application/json': { schema: this.schema(json, io) } }),
      ...Object.fromEntries(bodies),
    }
  }

  /** References to these headers and those of every answer. Pages of other origins may not read the operator's answers. */
  private headersOf(tag: Group['tag'], names: readonly HeaderName[]): Record<string, unknown> {
    const { isServer, hasCors } = this.host
    const all: HeaderName[] = [
      ...names,
      ...(isServer ? (['X-Request-Id'] as const) : []),
      ...(hasCors && tag !== 'operator' ? OF_CORS : []),
    ]
    for (const name of all) this.headers.add(name)
    return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
  }

  /** Converts to JSON Schema. Schemas with an id become components. */
  private schema(schema: z.ZodType, io: IO): JsonSchema {
    const known = this.known[io].get(schema)
    if (known) return known
    const text = JSON.stringify(z.toJSONSchema(schema, { io }))
    const { $schema, $defs, ...body } = JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'))
    Object.assign(this.schemas, $defs)
    this.known[io].set(schema, body)
    return body
  }
}

/** Every GET is also a HEAD: the same without a body, and without ranges (RFC 9110 14.2). */
function headOf({ operationId, parameters, responses, ...operation }: OperationObject): OperationObject {
  const kept = Object.entries(responses).filter(([status]) => !RANGE_STATUSES.includes(status))
  return {
    ...operation,
    operationId: `${operationId}Head`,
    parameters: parameters.filter(({ name }) => !Object.hasOwn(RANGES.shape, name)),
    responses: mapped(Object.fromEntries(kept), ({ content: _, ...head }) => head),
  }
}

function mapped<From, To>(
  record: Record<string, From>,
  to: (value: From, key: string) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, to(value, key)]))
}
