import type { Parameter, Schema } from './operation.js'

// What the routes of the gateway and of the server have in common, each said once.

export type HeaderName = keyof typeof HEADERS
export type ParameterName = keyof typeof PARAMETERS
export type SchemaName = keyof typeof SCHEMAS

const TEXT = { type: 'string', minLength: 1 }
const OUTPOINT = '[0-9a-f]{64}_(0|[1-9][0-9]{0,9})'
const ASKED_POINTER = '[0-9a-fA-F]{64}([_.](0|[1-9][0-9]{0,9}))?'
const SEQUENCE = '(-[12]|0|[1-9][0-9]{0,15})'

/** On every answer: pages of any origin may ask, and read the headers. */
export const CORS_HEADERS = ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers'] as const

/** What the text of a header is: a value of its own, or JSON. */
interface Header {
  description: string
  schema?: Schema
  content?: { 'application/json': { schema: Schema } }
}

export const HEADERS = {
  'Accept-Encoding': { description: 'How a body may be sent instead.', schema: TEXT },
  'Accept-Ranges': { description: 'Parts can be asked for.', schema: { const: 'bytes' } },
  'Access-Control-Allow-Origin': { description: 'Pages of any origin may ask.', schema: { const: '*' } },
  'Access-Control-Expose-Headers': {
    description: 'The headers that pages of other origins may read.',
    schema: TEXT,
  },
  'Cache-Control': {
    description:
      'Immutable for content at an outpoint, and at a step of an ordinal that is mined; a minute at a step that is not; `no-cache` for whatever may be another the next time; `no-store` for errors.',
    schema: {
      enum: ['public, max-age=31536000, immutable', 'public, max-age=60', 'no-cache', 'no-store'],
    },
  },
  'Content-Length': { description: 'The bytes of the body.', schema: { type: 'integer', minimum: 0 } },
  'Content-Range': {
    description: 'Which bytes of how many these are; `bytes */<length>` where none are.',
    schema: { type: 'string', pattern: '^bytes ([0-9]+-[0-9]+|\\*)/[0-9]+$' },
  },
  'Content-Security-Policy': {
    description:
      'With every type that a browser would run: content is a stranger’s, and runs in a sandbox; the host’s own page runs nothing but what is of the host.',
    schema: {
      type: 'string',
      pattern:
        "^(sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads|default-src 'none'; )",
    },
  },
  'Cross-Origin-Opener-Policy': {
    description: 'No page of another origin keeps a hand on it, even one that has opened it.',
    schema: { const: 'same-origin' },
  },
  'Cross-Origin-Resource-Policy': {
    description: 'Whether pages of any origin may embed it, as content, or those of this host only.',
    schema: { enum: ['cross-origin', 'same-origin'] },
  },
  ETag: {
    description: 'Strong, from the SHA-256 of the whole body.',
    schema: { type: 'string', pattern: '^"[0-9a-f]{64}"$' },
  },
  Location: { description: 'The same path, with `/index.html` behind it.', schema: TEXT },
  RateLimit: {
    description:
      'By which limit requests are counted, how many are left, and for how many seconds that holds.',
    schema: { type: 'string', pattern: '^"[a-z]+"; r=[0-9]+; t=[0-9]+$' },
  },
  'RateLimit-Policy': {
    description: 'By which limit requests are counted: so many of one client, in so many seconds.',
    schema: { type: 'string', pattern: '^"[a-z]+"; q=[0-9]+; w=60; pk=:[^:]+:$' },
  },
  'Referrer-Policy': {
    description: 'Where links lead does not hear where they stood.',
    schema: { const: 'no-referrer' },
  },
  'Retry-After': {
    description: 'In how many seconds to try again.',
    schema: { type: 'integer', minimum: 0 },
  },
  'WWW-Authenticate': {
    description: 'What to show: a token that the operator has set.',
    schema: { const: 'Bearer realm="minetree"' },
  },
  'X-Content-Type-Options': {
    description: 'It is never sniffed into another type.',
    schema: { const: 'nosniff' },
  },
  'X-Map': {
    description:
      'The MAP of the output; with a sequence, merged up to the step. Left out over 4,096 bytes: the metadata has it all.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Map' } } },
  },
  'X-Ord-Seq': {
    description: 'The step of the ordinal that this is. With a sequence.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-Origin': {
    description: 'The first outpoint of the ordinal. With a sequence.',
    schema: { type: 'string', pattern: `^${OUTPOINT}$` },
  },
  'X-Outpoint': {
    description: 'The outpoint as resolved; with a sequence, where the ordinal stood at that step.',
    schema: { type: 'string', pattern: `^${OUTPOINT}$` },
  },
  'X-Parent': {
    description: 'The parent that it was inscribed under.',
    schema: { type: 'string', pattern: `^${OUTPOINT}$` },
  },
  'X-Request-Id': {
    description:
      'What the log of this host calls the request: that of the request, where it came with one of up to 64 characters of `A-Z a-z 0-9 _ . -`, else a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,64}$' },
  },
} satisfies Record<string, Header>

export const PARAMETERS = {
  Reference: {
    name: 'reference',
    in: 'path',
    required: true,
    description:
      '`<txid>_<vout>`, `<txid>.<vout>`, or `<txid>` for its first output with content; with `:<sequence>`, the ordinal at that step: 0 and up, `-1` for where it is now, `-2` for its origin.',
    schema: { $ref: '#/components/schemas/AskedReference' },
  },
  Outpoint: {
    name: 'outpoint',
    in: 'path',
    required: true,
    description: 'An outpoint.',
    schema: { $ref: '#/components/schemas/AskedOutpoint' },
  },
  Name: {
    name: 'name',
    in: 'path',
    required: true,
    description: 'A name.',
    schema: { $ref: '#/components/schemas/Name' },
  },
  Range: {
    name: 'Range',
    in: 'header',
    description: '`bytes=`: one range is answered with that part, several with the whole.',
    schema: { type: 'string' },
  },
  'If-Range': {
    name: 'If-Range',
    in: 'header',
    description: 'An ETag: with another than this, `Range` does not count.',
    schema: { type: 'string' },
  },
  'If-Match': {
    name: 'If-Match',
    in: 'header',
    description: 'ETags: where none of them holds, 412.',
    schema: { type: 'string' },
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    description: 'ETags: with one that still holds, 304.',
    schema: { type: 'string' },
  },
  'Service-Worker': {
    name: 'Service-Worker',
    in: 'header',
    description: 'What browsers send as `script` for a service worker, which is refused.',
    schema: { type: 'string', not: { const: 'script' } },
  },
} satisfies Record<string, Parameter>

const SENTENCE = { type: 'string', minLength: 1, description: 'A sentence for a person.' }
const CODE = { type: 'string', description: 'A word for a machine.' }
const OVERLAY_FIELDS = {
  error: SENTENCE,
  code: CODE,
  status: { const: 'error' },
  message: { type: 'string', description: 'The same as `error`, where overlay clients look for it.' },
}

export const SCHEMAS = {
  Error: {
    type: 'object',
    required: ['error', 'code'],
    additionalProperties: false,
    properties: { error: SENTENCE, code: CODE },
  },
  OverlayError: {
    description: 'An error as overlay clients expect it.',
    type: 'object',
    required: ['error', 'code', 'status', 'message'],
    additionalProperties: false,
    properties: OVERLAY_FIELDS,
  },
  ConflictError: {
    description: 'An error as overlay clients expect it, with the transaction that counts.',
    type: 'object',
    required: ['error', 'code', 'status', 'message', 'txid'],
    additionalProperties: false,
    properties: {
      ...OVERLAY_FIELDS,
      txid: { type: 'string', pattern: '^[0-9a-f]{64}$', description: 'The transaction that counts.' },
    },
  },
  Outpoint: { description: '`<txid>_<vout>`.', type: 'string', pattern: `^${OUTPOINT}$` },
  AskedOutpoint: {
    description: '`<txid>_<vout>` or `<txid>.<vout>`, hex in either case.',
    type: 'string',
    pattern: '^[0-9a-fA-F]{64}[_.](0|[1-9][0-9]{0,9})$',
  },
  AskedReference: {
    description: 'A pointer, and `:<sequence>` where an ordinal is asked for at a step.',
    type: 'string',
    pattern: `^${ASKED_POINTER}(:${SEQUENCE})?$`,
  },
  Map: {
    description: 'MAP metadata: texts, and lists of them. At most 64 KiB, or what the host says.',
    type: 'object',
  },
  MapTruncated: {
    description: 'Present where not all that was said has room in `map`.',
    type: 'boolean',
    enum: [true],
  },
  Name: {
    description: '1 to 255 characters, so narrow that no two names look alike.',
    type: 'string',
    pattern: '^[a-z0-9-]{1,255}$',
  },
  Domain: {
    description: 'The prefix that a node stands for; the root’s is empty.',
    type: 'string',
    pattern: '^[a-z0-9-]{0,255}$',
  },
} satisfies Record<string, Schema>
