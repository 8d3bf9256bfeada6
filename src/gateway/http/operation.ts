import { z } from 'zod'
import type { ErrorCode } from './errors.js'
import { count, map, outpoint, text } from './schemas.js'

/** One method of one path: what it takes and answers. The OpenAPI document is built of these, and nothing else reads them. */
export interface Operation {
  /** The method, and the path below the prefixes of its router. */
  route: `${'GET' | 'POST'} /${string}`
  /** Unique in the document. */
  id: string
  tag: keyof typeof TAGS
  summary: string
  description?: string
  /** Parameters of the path, in its order. */
  params?: z.ZodObject
  query?: z.ZodObject
  /** Headers of the request, as they are written. An ETag and ranges bring their own. */
  headers?: z.ZodObject
  body?: { description: string } & Body
  /** With status 200. */
  answer: Answer
  /** By status: answers beside that, and beside those to preconditions and ranges. */
  otherAnswers?: Record<string, Answer>
  /** What each code means here. Its status is the usual one, unless the key names another: `414 TOO_LARGE`. */
  errors?: Errors
}

/** JSON of some shape, or bytes and text of media types. */
interface Body {
  json?: z.ZodType
  types?: readonly string[]
}

interface Answer extends Body {
  description: string
  /** Without those that the server adds to every answer. `ETag` means preconditions, and `Accept-Ranges` ranges. */
  headers?: readonly HeaderName[]
}

type Errors = Partial<Record<ErrorCode | `${number} ${ErrorCode}`, string>>

export const TAGS = {
  content: 'The content of outputs.',
  names: 'The tree of names.',
  preview: 'What an inscription would look like.',
  overlay: 'The overlay protocol.',
  operator: 'For the operator, with a token.',
  health: 'For monitoring, and about this host.',
}

/** Of every operation that reads or writes the store. */
export const STORE_ERRORS = {
  INTERNAL: 'Status 500: the fault of this host. The cause is only in its log.',
} as const

/** Of every operation that a service worker is refused by. */
export const SERVICE_WORKER = z.object({
  'Service-Worker': z
    .string()
    .meta({ not: { const: 'script' } })
    .optional()
    .describe('Browsers send `script` when they install a service worker, which is refused.'),
})

/** Of bytes whose type is a stranger's. */
export const CONTENT_SECURITY = [
  'X-Content-Type-Options',
  'Cross-Origin-Resource-Policy',
  'Content-Security-Policy',
] as const satisfies HeaderName[]

/** Of a proof. */
export const PROOF_ANSWER: Answer = {
  description: 'An Outpoint BEEF (BRC-158), which can be verified offline.',
  headers: [
    'Content-Length',
    'Cache-Control',
    'ETag',
    'X-Content-Type-Options',
    'Cross-Origin-Resource-Policy',
  ],
  types: ['application/octet-stream'],
}

export type HeaderName = keyof typeof HEADERS

/** The headers of answers. */
export const HEADERS = {
  'Accept-Encoding': text.describe('The codings that a body may be sent in.'),
  'Accept-Ranges': z.literal('bytes').describe('The body can be requested in ranges.'),
  'Access-Control-Allow-Origin': z.literal('*').describe('Pages of any origin may send requests.'),
  'Access-Control-Expose-Headers': text.describe('The headers that pages of other origins may read.'),
  'Cache-Control': z
    .enum(['public, max-age=31536000, immutable', 'public, max-age=60', 'no-cache', 'no-store'])
    .describe(
      'Immutable for content at an outpoint, and at a step of an ordinal that is mined; a minute for a step that is not mined yet; `no-cache` for everything else that may change; `no-store` for errors.',
    ),
  'Content-Length': count.describe('The length of the body in bytes.'),
  'Content-Range': z
    .string()
    .regex(/^bytes ([0-9]+-[0-9]+|\*)\/[0-9]+$/)
    .describe('Which bytes these are, and of how many; `bytes */<length>` if the range has none.'),
  'Content-Security-Policy': z
    .string()
    .regex(
      /^(sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads|default-src 'none'; )/,
    )
    .describe(
      "With every type that a browser would run: content runs in a sandbox, and the host's own page runs only scripts of the host.",
    ),
  'Cross-Origin-Opener-Policy': z
    .literal('same-origin')
    .describe('A page of another origin loses its handle on this one, even if it opened it.'),
  'Cross-Origin-Resource-Policy': z
    .enum(['cross-origin', 'same-origin'])
    .describe('Whether pages of any origin may embed this, or only those of this host.'),
  ETag: z
    .string()
    .regex(/^"[0-9a-f]{64}"$/)
    .describe('A strong tag: the SHA-256 of the whole body.'),
  Location: text.describe('The same path with `/index.html` at its end.'),
  RateLimit: z
    .string()
    .regex(/^"[a-z]+"; r=[0-9]+; t=[0-9]+$/)
    .describe('How many requests are left of which limit, and in how many seconds it starts again.'),
  'RateLimit-Policy': z
    .string()
    .regex(/^"[a-z]+"; q=[0-9]+; w=60; pk=:[^:]+:$/)
    .describe('The limit: how many requests a client may send in how many seconds.'),
  'Referrer-Policy': z.literal('no-referrer').describe('Links do not tell where they were followed from.'),
  'Retry-After': count.describe('In how many seconds to try again.'),
  'WWW-Authenticate': z
    .literal('Bearer realm="minetree"')
    .describe('The request needs a token that the operator has set.'),
  'X-Content-Type-Options': z.literal('nosniff').describe('Browsers must not guess another type.'),
  'X-Map': map.describe(
    'The MAP of the output; with a sequence, merged up to the step. Absent if it takes more than 4,096 bytes: the metadata has all of it.',
  ),
  'X-Ord-Seq': count.describe('The step of the ordinal; only with a sequence.'),
  'X-Origin': outpoint.describe('The origin of the ordinal; only with a sequence, or of a stream.'),
  'X-Outpoint': outpoint.describe(
    'The resolved outpoint; with a sequence, where the ordinal was at that step.',
  ),
  'X-Parent': outpoint.describe('The parent that it was inscribed under.'),
  'X-Request-Id': z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/)
    .describe(
      'The id of the request in the log of this host: the one it was sent with, if that has up to 64 characters of `A-Z a-z 0-9 _ . -`, else a new one.',
    ),
}
