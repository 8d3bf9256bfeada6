import type { Profile } from '../../../backend/src/protocol/profile.js'
import { HEADERS, PARAMETERS, SCHEMAS } from '../../gateway/openapi/components.js'
import { gatewayPaths } from '../../gateway/openapi/gateway-paths.js'
import {
  answer,
  errorAnswer,
  type Operation,
  type PathItem,
  type Paths,
  parameters,
  preconditionFailed,
} from '../../gateway/openapi/operation.js'
import { isAboutHost } from '../http/readiness.js'
import { ADMIN_PATHS } from './admin-paths.js'
import { DEPLOYMENT_PATHS } from './deployment-paths.js'
import { HEALTH_PATHS } from './health-paths.js'
import { METRICS_PATHS } from './metrics-paths.js'
import { MINE_PAGE_PATHS } from './mine-page-paths.js'
import { OVERLAY_PATHS } from './overlay-paths.js'

/** An OpenAPI 3.1 document, in the fields that are used here. */
export interface OpenapiDocument {
  openapi: '3.1.1'
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string; description: string }[]
  tags: { name: string; description: string }[]
  paths: Paths
  components: {
    headers: typeof HEADERS
    parameters: typeof PARAMETERS
    schemas: typeof SCHEMAS
    securitySchemes: typeof SECURITY_SCHEMES
  }
}

const DESCRIPTION = `Names that are mined, and content that lives on the chain, from what this host has admitted.

Pages of any origin may ask: preflights are answered at every path (204), but for those of the operator.
Every error is \`{"error": "<sentence>", "code": "<CODE>"}\` and is not to be stored; a path that is not in here is 404 \`NOT_FOUND\`.
Before any route, a path may be too long (414 \`TOO_LARGE\`), the head of a request, too (431), and a request may come too slowly (408 \`BAD_BODY\`), or not be one (400, 417).

Compressed bodies are refused (415 \`UNSUPPORTED_ENCODING\`), unless the operator accepts them. A body may be given up half-way where too many are uploaded at once (503 \`NOT_READY\` with \`Retry-After\`), and nothing is written while the store is full (503 \`STORE_FULL\`).

Requests of a client are counted, but for those that come from the machine itself and those to \`/health\`: \`RateLimit\` says how many are left.`

const SECURITY_SCHEMES = {
  operator: { type: 'http', scheme: 'bearer', description: 'The `ADMIN_TOKEN` of the settings.' },
} as const

/** The document describes itself, too. */
const OWN_PATHS: Paths = {
  '/openapi.json': {
    get: {
      operationId: 'openapi',
      tags: ['health'],
      summary: 'This document',
      parameters: parameters('If-Match', 'If-None-Match'),
      responses: {
        '200': answer({
          description: 'An OpenAPI 3.1 document.',
          headers: ['Cache-Control', 'ETag'],
          content: { 'application/json': { type: 'object' } },
        }),
        '304': answer({
          description: 'It is what whoever asks has.',
          headers: ['Cache-Control', 'ETag'],
        }),
        '412': preconditionFailed(),
      },
    },
  },
}

/** Describes every route that the server has under a profile. */
export function openapiDocument({
  profile,
  version,
}: {
  profile: Profile
  version: string
}): OpenapiDocument {
  const paths = {
    ...counted({
      ...gatewayPaths(profile),
      ...DEPLOYMENT_PATHS,
      ...MINE_PAGE_PATHS,
      ...OVERLAY_PATHS,
      ...ADMIN_PATHS,
      ...OWN_PATHS,
    }),
    ...HEALTH_PATHS,
    ...METRICS_PATHS,
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'minetree',
      version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The host that serves this document.' }],
    tags: [
      { name: 'content', description: 'The bytes that outputs hold.' },
      { name: 'names', description: 'The tree of names.' },
      { name: 'preview', description: 'What an inscription would look like.' },
      { name: 'overlay', description: 'What overlay clients speak.' },
      { name: 'operator', description: 'What the operator asks, with a token.' },
      { name: 'health', description: 'For whoever watches the host, or reads about it.' },
    ],
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, item]) => [path, withHead(withNotReady(path, withBody(item)))]),
    ),
    components: {
      headers: HEADERS,
      parameters: PARAMETERS,
      schemas: SCHEMAS,
      securitySchemes: SECURITY_SCHEMES,
    },
  }
}

/** Paths whose requests are counted, with what is answered to those that are too many. */
function counted(paths: Paths): Paths {
  const items = Object.entries(paths).map(([path, item]) => {
    const operations = Object.entries(item).map(([method, operation]: [string, Operation]) => {
      const isOperators = operation.tags[0] === 'operator'
      const tooMany = errorAnswer({
        codes: ['RATE_LIMITED'],
        description: 'More requests of one client than the operator allows.',
        headers: ['RateLimit', 'RateLimit-Policy', 'Retry-After'],
        shape: operation.tags[0] === 'overlay' || isOperators ? 'OverlayError' : 'Error',
        shut: isOperators,
      })
      return [method, { ...operation, responses: { ...operation.responses, '429': tooMany } }] as const
    })
    return [path, Object.fromEntries(operations)] as const
  })
  return Object.fromEntries(items)
}

/** No operation takes a body that is compressed, unless a setting allows it. */
function withBody(item: PathItem): PathItem {
  const { post } = item
  if (post?.requestBody === undefined) return item
  const isOperators = post.tags[0] === 'operator'
  const unsupported = errorAnswer({
    codes: ['UNSUPPORTED_ENCODING'],
    description: 'The body is compressed; send it as `Accept-Encoding` says.',
    headers: ['Accept-Encoding'],
    shape: post.tags[0] === 'overlay' || isOperators ? 'OverlayError' : 'Error',
    shut: isOperators,
  })
  return { ...item, post: { ...post, responses: { ...post.responses, '415': unsupported } } }
}

/** Nothing but what is about the host is answered while the index is made anew. */
function withNotReady(path: string, item: PathItem): PathItem {
  if (isAboutHost(path)) return item
  const operations = Object.entries(item).map(([method, operation]: [string, Operation]) => {
    const isOperators = operation.tags[0] === 'operator'
    const notReady = errorAnswer({
      codes: ['NOT_READY'],
      description: 'What is answered is made anew of what was admitted; later.',
      shape: operation.tags[0] === 'overlay' || isOperators ? 'OverlayError' : 'Error',
      shut: isOperators,
    })
    return [method, { ...operation, responses: { '503': notReady, ...operation.responses } }]
  })
  return Object.fromEntries(operations)
}

/** Ranges are of GET alone (RFC 9110 14.2). */
const RANGE_STATUSES = ['206', '416']
const RANGE_PARAMETERS = parameters('Range', 'If-Range').map(({ $ref }) => $ref)

/** Wherever GET is answered, so is HEAD: the same without a body. */
function withHead(item: PathItem): PathItem {
  return item.get === undefined ? item : { ...item, head: headOf(item.get) }
}

function headOf({ operationId, responses, parameters: taken, ...operation }: Operation): Operation {
  const bodiless = Object.entries(responses)
    .filter(([status]) => !RANGE_STATUSES.includes(status))
    .map(([status, { content: _, ...head }]) => [status, head])
  const kept = taken?.filter((each) => !('$ref' in each && RANGE_PARAMETERS.includes(each.$ref)))
  return {
    ...operation,
    operationId: `${operationId}Head`,
    ...(kept && { parameters: kept }),
    responses: Object.fromEntries(bodiless),
  }
}
