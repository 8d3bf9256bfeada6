import { toHex, utf8 } from '../../backend/src/protocol/bytes.js'
import {
  essenceOf,
  isGzip,
  isMediaType,
  TEXT_TYPES,
  textType,
  typeField,
  UNTYPED,
} from '../../backend/src/protocol/media-type.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { sha256 } from '../../backend/src/protocol/transaction.js'
import { chunksOf, readBounded } from './bounded-fetch.js'
import type { VerifiedStep } from './verify-history.js'

/** How many gateways showed the same tip. No proof can show that a tip is unspent: gateways can only agree on it, for now. */
export interface TipAgreement {
  agreedBy: number
  /** How many gateways were asked. */
  of: number
  /** When they were asked, in milliseconds since 1970. */
  at: number
}

/** How many gateways agree that a stream has no further chunk. */
export interface StreamEnd extends TipAgreement {
  /** As in {@link Verification}, for all chunks. */
  verified: Verification['verified']
}

/** What was verified of a response, and what was only agreed on. */
export interface Verification {
  /**
   * `headers`: all of it is in blocks that the chain tracker knows. `unproven`: some of it is in no block, or no headers were
   * asked. For a stream, this is about the first chunk.
   */
  verified: 'headers' | 'unproven'
  /** The output with the bytes. */
  outpoint: Outpoint
  /** The directories on the way, and the output with the bytes, each with the height of its block. */
  path: VerifiedStep[]
  /** The outputs of which patches make these. */
  bases?: VerifiedStep[]
  name?: string
  /** The ordinal at the root, for a name or a sequence. */
  ordinal?: { origin: Outpoint; sequence: number; outpoint: Outpoint }
  /** For a name, or the sequence -1. */
  tip?: TipAgreement
  /** For a stream: resolves at its end, which is a tip, too; rejects if the body is not read that far. Absent for HEAD. */
  end?: Promise<StreamEnd>
}

/** A response whose bytes are verified. A clone of it has no `verification`. */
export type VerifiedResponse = Response & { readonly verification: Verification }

/** The parts of a request that matter here, as in `fetch`. */
export interface Question {
  method: 'GET' | 'HEAD'
  headers: Headers
}

/** The `Content-Type` for an inscribed type, as the gateway sends it. */
export function servedType(inscribed: string): string {
  return isMediaType(inscribed) ? typeField(inscribed) : UNTYPED
}

/** Longer text gets no character set that it was not published with: the size of a gateway's chunk, in bytes. */
const MAX_TYPED = 256 * 1024

/**
 * A response with the bytes of an output, or the part that the request asks for. Compressed content is decompressed, as `fetch`
 * does with a gateway's answer.
 *
 * @param options.isSite Whether a host shows it.
 * @param options.status 200 for the requested content; with another status, conditions and ranges are ignored.
 * @param options.maxBytes The most bytes after decompression.
 */
export async function fileResponse(
  { contentType, body: published }: { contentType: string; body: Uint8Array },
  options: {
    question: Question
    verification: Verification
    cache: string
    isSite: boolean
    status: number
    maxBytes: number
  },
): Promise<VerifiedResponse> {
  const { question, verification, cache, isSite, status, maxBytes } = options
  const inscribed = servedType(contentType)
  const isCompressed = TEXT_TYPES.test(essenceOf(contentType)) && isGzip(published)
  const plain = isCompressed ? await uncompressed(published, maxBytes) : undefined
  const isTyped = isSite && !isCompressed && published.length <= MAX_TYPED
  const type = isTyped ? textType(inscribed, published) : inscribed
  const body = plain ?? published
  // As in the gateway: the same bytes with another type have another tag.
  const tag = `"${await sha256Hex(utf8(`${await sha256Hex(published)} ${type}`))}"`
  const headers = headersOf(verification, { 'Cache-Control': cache, ETag: tag, 'Accept-Ranges': 'bytes' })
  const { method } = question
  const isConditional = status === 200
  if (isConditional && isKnown(question.headers.get('if-none-match'), tag))
    return verifiedResponse(null, { status: 304, headers }, verification)
  const isCut = isConditional && method === 'GET'
  const range = isCut ? requestedRange(question.headers, { tag, length: body.length }) : undefined
  if (range === 'unsatisfiable') {
    headers.set('Content-Range', `bytes */${body.length}`)
    return verifiedResponse(null, { status: 416, headers }, verification)
  }
  const { from, to } = range ?? { from: 0, to: body.length }
  if (range !== undefined) headers.set('Content-Range', `bytes ${from}-${to - 1}/${body.length}`)
  headers.set('Content-Type', type)
  headers.set('Content-Length', String(to - from))
  // A copy: a view would keep the whole transaction in memory, and make it writable.
  const bytes = method === 'HEAD' ? null : body.slice(from, to)
  return verifiedResponse(bytes, { status: range === undefined ? status : 206, headers }, verification)
}

/** Decompresses gzip; undefined for other bytes, which only begin like gzip, or if the result is longer than `maxBytes`. */
async function uncompressed(body: Uint8Array, maxBytes: number): Promise<Uint8Array | undefined> {
  const stream = new Blob([body as Uint8Array<ArrayBuffer>]).stream()
  const unzipped = chunksOf(stream.pipeThrough(new DecompressionStream('gzip')))
  return await readBounded(unzipped, { url: 'content', maxBytes }).catch(() => undefined)
}

/** A redirect by the rules of a site. */
export function movedResponse(
  { status, location, cache }: { status: number; location: string; cache: string },
  verification: Verification,
): VerifiedResponse {
  const headers = headersOf(verification, { 'Cache-Control': cache, Location: location })
  return verifiedResponse(null, { status, headers }, verification)
}

/** The answer for a path that verified directories do not have. */
export function missingResponse(reason: string, verification: Verification): VerifiedResponse {
  const headers = headersOf(verification, { 'Cache-Control': 'no-store', 'Content-Type': 'application/json' })
  const body = JSON.stringify({ error: reason, code: 'NOT_FOUND' })
  return verifiedResponse(body, { status: 404, headers }, verification)
}

/** A response with chunks, each verified before it is passed on. The length is not known before the end. */
export function streamResponse(
  contentType: string,
  options: {
    question: Question
    verification: Verification
    chunks: AsyncGenerator<Uint8Array>
    onCancel?: () => void
  },
): VerifiedResponse {
  const { question, verification, chunks, onCancel } = options
  const headers = headersOf(verification, {
    'Cache-Control': 'no-cache',
    'Content-Type': servedType(contentType),
  })
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        onCancel?.()
        await chunks.return(undefined)
      },
    },
    // A chunk may have megabytes: the next one is fetched once this one has been read.
    { highWaterMark: 0 },
  )
  return verifiedResponse(question.method === 'HEAD' ? null : body, { status: 200, headers }, verification)
}

function headersOf(verification: Verification, more: Record<string, string>): Headers {
  const { ordinal, outpoint, verified } = verification
  const isRoot = verification.path.length === 1
  return new Headers({
    ...more,
    'X-Verified': verified,
    'X-Outpoint': formatOutpoint(isRoot ? (ordinal?.outpoint ?? outpoint) : outpoint),
    'X-Content-Type-Options': 'nosniff',
    ...(ordinal && { 'X-Origin': formatOutpoint(ordinal.origin), 'X-Ord-Seq': String(ordinal.sequence) }),
  })
}

function verifiedResponse(
  body: ConstructorParameters<typeof Response>[0],
  init: { status: number; headers: Headers },
  verification: Verification,
): VerifiedResponse {
  return Object.defineProperty(new Response(body, init), 'verification', {
    value: verification,
    enumerable: true,
  }) as VerifiedResponse
}

/** WebCrypto's hash, which pages have in secure contexts; otherwise the SDK's, which is a lot slower. */
async function sha256Hex(bytes: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto ?? {}
  if (subtle === undefined) return toHex(sha256(bytes))
  return toHex(new Uint8Array(await subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)))
}

/** A tag of a list. A tag may contain a comma, so the list is not split at commas. */
const TAG = /(?:W\/)?"[^"]*"/g

/** Whether `If-None-Match` names a tag, compared weakly (RFC 9110 13.1.2). */
function isKnown(header: string | null, tag: string): boolean {
  if (header === null) return false
  return (
    header.trim() === '*' || (header.match(TAG)?.some((each) => each === tag || each === `W/${tag}`) ?? false)
  )
}

/**
 * The requested range (RFC 9110 14.2), without its end. Several ranges, invalid headers, an `If-Range` with another tag and an
 * empty body mean the whole body.
 */
function requestedRange(
  headers: Headers,
  { tag, length }: { tag: string; length: number },
): { from: number; to: number } | 'unsatisfiable' | undefined {
  const ifRange = headers.get('if-range')
  const [, first, last] = /^bytes=(\d*)-(\d*)$/i.exec(headers.get('range')?.trim() ?? '') ?? []
  if (first === undefined || last === undefined || first + last === '') return undefined
  if (ifRange !== null && ifRange !== tag) return undefined
  if (length === 0) return undefined
  if (first === '') {
    const from = Math.max(0, length - Number(last))
    return from === length ? 'unsatisfiable' : { from, to: length }
  }
  if (last !== '' && BigInt(first) > BigInt(last)) return undefined
  const from = Number(first)
  if (from >= length) return 'unsatisfiable'
  return { from, to: last === '' ? length : Math.min(length, Number(last) + 1) }
}
