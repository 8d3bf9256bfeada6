import { type ErrorRequestHandler, type RequestHandler, Router } from 'express'
import { z } from 'zod'
import type { ErrorCode } from './errors.js'
import { asOf, count, map, outpoint, text } from './schemas.js'

/** The operations of a route group, from which its routes ({@link described}) and the OpenAPI document are made. */
export interface OperationGroup<Id extends string = string> {
  tag: keyof typeof TAGS
  errors?: Errors
  /** By id, which is unique in the document. */
  operations: Record<Id, Operation>
}

export interface Operation {
  /** The method, and the path below the prefixes of the group. */
  route: `${'GET' | 'POST'} /${string}`
  /** For paths that are read as sent: Express decodes parameters, and refuses those it cannot decode. */
  pattern?: RegExp
  summary: string
  description?: string
  params?: z.ZodObject
  query?: z.ZodObject
  /** Request headers, except those for preconditions and ranges. */
  headers?: z.ZodObject
  body?: Body
  answer: Answer
  /** Answers with other statuses, except those to preconditions and ranges. */
  otherAnswers?: Record<string, Answer>
  errors?: Errors
}

/** Bytes or text of some media types, JSON of some shape, or either. */
interface Body {
  description: string
  json?: z.ZodType
  types?: readonly string[]
}

interface Answer extends Body {
  /** Without those that every answer has. `ETag` implies preconditions, `Accept-Ranges` implies ranges. */
  headers?: readonly HeaderName[]
}

/** The meaning of each code for this operation. A key may override the code's status: `414 TOO_LARGE`. */
type Errors = Partial<Record<ErrorCode | `${number} ${ErrorCode}`, string>>

export const TAGS = {
  content: 'Content of outputs.',
  names: 'The tree of names.',
  lists: 'Paged lists for browsing.',
  recursion: 'Recursive endpoints for inscribed pages, compatible with ord.',
  preview: 'Previews of content before it is inscribed.',
  transactions: 'Transactions and outputs, for wallets.',
  overlay: 'The overlay protocol.',
  operator: 'For the operator; these require a token.',
  health: 'Health, metrics and facts about this host.',
}

/** Errors of every operation that reads or writes the store. */
export const STORE_ERRORS: Errors = {
  INTERNAL: '500: the fault of this host, and explained only in its log.',
}

export const DAMAGED =
  'The stored bytes are damaged: their hash does not match. The operator has to repair the store.'

export const ORIGIN_PENDING =
  'Part of the history of the ordinal is missing here, and the host is fetching it. `Retry-After` says when to ask again.'

export const NOT_CAUGHT_UP =
  'Not found, but the host has not finished following the tree, so it may still exist. `progress` says how far the host is, and `Retry-After` when to ask again.'

export const SERVICE_WORKER = z.object({
  'Service-Worker': z
    .string()
    .meta({ not: { const: 'script' } })
    .optional()
    .describe('`script`, which browsers send to install a service worker, is refused.'),
})

/** Headers of bytes that no browser runs. */
export const BYTES_HEADERS: readonly HeaderName[] = [
  'Content-Length',
  'X-Content-Type-Options',
  'Cross-Origin-Resource-Policy',
]
/** Headers of bytes with a stranger's type. */
export const CONTENT_HEADERS: readonly HeaderName[] = [...BYTES_HEADERS, 'Content-Security-Policy']

export const PROOF_ANSWER: Answer = {
  description: 'An Outpoint BEEF (BRC-158), verifiable offline.',
  headers: [...BYTES_HEADERS, 'ETag'],
  types: ['application/octet-stream'],
}

const matching = (pattern: RegExp, description: string) => z.string().regex(pattern).describe(description)

const DIGEST = /^sha-256=:[A-Za-z0-9+/]{43}=:$/

export type HeaderName = keyof typeof HEADERS

export const HEADERS = {
  'Accept-Encoding': text.describe('The content codings accepted in request bodies.'),
  'Accept-Ranges': z.literal('bytes').describe('Range requests are supported.'),
  'Access-Control-Allow-Origin': z.literal('*').describe('Pages of any origin may call this API.'),
  'Access-Control-Allow-Private-Network': z
    .literal('true')
    .describe('Allows requests to a host in a private network, as OverlayExpress does.'),
  'Access-Control-Expose-Headers': text.describe(
    'The response headers that pages of other origins may read.',
  ),
  'Cache-Control': z
    .enum(['public, max-age=31536000, immutable', 'public, max-age=60', 'no-cache', 'no-store'])
    .describe(
      'Immutable for content at an outpoint or at a mined step of an ordinal; one minute for a step that is not mined yet; `no-cache` for everything else that may change; `no-store` for errors.',
    ),
  'Content-Digest': matching(DIGEST, 'The digest of the body (RFC 9530). Absent from partial responses.'),
  'Content-Length': count.describe('The length of the body in bytes.'),
  'Content-Range': matching(
    /^bytes ([0-9]+-[0-9]+|\*)\/[0-9]+$/,
    'The returned range and the full length; `bytes */<length>` if the range cannot be satisfied.',
  ),
  'Content-Security-Policy': matching(
    /^(sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads|default-src 'none'; )/,
    'Sent with every type that a browser would run. Content is sandboxed; pages of the host run only their own scripts.',
  ),
  'Cross-Origin-Opener-Policy': z
    .literal('same-origin')
    .describe('Pages of other origins get no reference to this one, even if they opened it.'),
  'Cross-Origin-Resource-Policy': z
    .enum(['cross-origin', 'same-origin'])
    .describe('Whether pages of any origin may embed this or only pages of this host.'),
  ETag: matching(
    /^"[0-9a-f]{64}(-[0-9a-f]{1,16})?(-br|-gzip)?"$/,
    'A strong tag: the SHA-256 of the whole body, or of the body without `asOf` followed by `asOf`; then the content coding, if any.',
  ),
  Location: text.describe('The same path with `/index.html` appended.'),
  RateLimit: matching(
    /^"[a-z]+"; r=[0-9]+; t=[0-9]+$/,
    'The limit that applies, the remaining requests, and the seconds until it resets.',
  ),
  'RateLimit-Policy': matching(
    /^"[a-z]+"; q=[0-9]+; w=60; pk=:[^:]+:$/,
    'The limit: requests per client, and its window in seconds.',
  ),
  'Referrer-Policy': z.literal('no-referrer').describe('Links send no referrer.'),
  'Repr-Digest': matching(
    DIGEST,
    'The digest of the whole content in its content coding, also in partial responses (RFC 9530). Absent if content inscribed compressed is sent uncompressed.',
  ),
  'Retry-After': count.describe('Seconds to wait before retrying.'),
  Vary: text.describe(
    '`Accept`: errors are pages for requests that prefer `text/html`, and image formats are negotiated. `Accept-Encoding`: the body may be compressed.',
  ),
  'WWW-Authenticate': z
    .literal('Bearer realm="minetree"')
    .describe('The request needs the token that the operator has set.'),
  'X-As-Of': asOf.describe('The `asOf` of the body, as JSON. Absent if the host does not follow the chain.'),
  'X-Complete': z
    .literal('false')
    .describe('Present until the host has caught up with the tree of names for the first time.'),
  'X-Content-Type-Options': z.literal('nosniff').describe('Browsers must not sniff the type.'),
  'X-Image-Frames': matching(
    /^[0-9]+\/[0-9]+$/,
    'For an animated image: the number of frames shown, and its total number.',
  ),
  'X-Map': map.describe(
    'The MAP of the output; with a sequence, merged up to that step. Absent if it is over 4,096 bytes (12,288 with `map=true`): the metadata has all of it.',
  ),
  'X-Ord-Seq': count.describe('The step of the ordinal. Only with a sequence.'),
  'X-Origin': outpoint.describe('The origin of the ordinal; only with a sequence, or of a stream.'),
  'X-Outpoint': outpoint.describe('The resolved outpoint; with a sequence, that of the ordinal at the step.'),
  'X-Parent': outpoint.describe('The parent of the inscription.'),
  'X-Request-Id': matching(
    /^[A-Za-z0-9_.-]{1,64}$/,
    'The id of this request in the log of the host: the one sent by the client if it has up to 64 characters of `A-Z a-z 0-9 _ . -`, otherwise a new one.',
  ),
}

/** Named groups of routes that clients ask about; the names are those of `@1sat/types`, except `image`. */
export type Capability = 'beef' | 'txo' | 'overlay' | 'ordfs' | 'image'

/** Routes that belong together, and their descriptions. The OpenAPI document and the capabilities cover the mounted groups. */
export interface RouteGroup {
  /**
   * What the routes need besides a store to read. A host of another engine gets only those with `reads`; the others belong to the
   * writer, the operator, or the process.
   */
  needs: 'reads' | 'writer' | 'operator' | 'process'
  /** The prefixes of the profile that each route is below, or `''` for the root. */
  prefixes: readonly string[]
  /** Empty for pages, which `docs/spec/http.md` lists. */
  operations: readonly OperationGroup[]
  capability?: Capability
  /** Below the prefixes. Missing if the routes are mounted separately, or by the handler of another group. */
  handler?: RequestHandler
}

export type Routes = Pick<RouteGroup, 'operations'> & { handler: Router }

/** The handlers of one operation. Only they know the types of its parameters. */
type Handlers = RequestHandler<never> | RequestHandler<never>[]

/** The error for a path with a broken escape, for which Express throws URIError: it is invalid like any other. */
type BadEscape = (path: string) => Error

/**
 * Describes operations, once for their routes and for the OpenAPI document.
 *
 * @returns A function that makes the routes, in the order of the descriptions, from a handler for each operation.
 */
export function described<Id extends string>(group: OperationGroup<Id>) {
  return (handlers: Record<Id, Handlers>, badEscape?: BadEscape): Routes => {
    // Otherwise a proxy that hides `/metrics` would let `/METRICS` through.
    const handler = Router({ caseSensitive: true })
    for (const id of Object.keys(group.operations) as Id[]) {
      const { route, pattern }: Operation = group.operations[id]
      const [method, path = ''] = route.split(' ')
      const at = pattern ?? path.replace(/\{(\w+)\}/g, ':$1')
      handler[method === 'GET' ? 'get' : 'post'](at, handlers[id] as RequestHandler)
    }
    if (badEscape !== undefined) handler.use(escapesRefused(badEscape))
    return { operations: [group], handler }
  }
}

function escapesRefused(badEscape: BadEscape): ErrorRequestHandler {
  return (error: unknown, { path }, _response, next) =>
    next(error instanceof URIError ? badEscape(path) : error)
}

export function below(
  prefixes: readonly string[],
  routes: Routes,
  others: Partial<Pick<RouteGroup, 'needs' | 'capability'>> = {},
): RouteGroup {
  return { needs: 'reads', prefixes, ...routes, ...others }
}

/** Mounts groups on one router: Express leaves each inner one, if it answers nothing, only in another turn of the event loop. */
export function mounted(groups: readonly RouteGroup[], router = Router()): Router {
  // Express takes the first path that matches, and the root matches everything.
  for (const { prefixes, handler } of groups)
    if (handler !== undefined) router.use([...prefixes].sort().reverse(), handler)
  return router
}
