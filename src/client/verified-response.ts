import { joinBytes, toHex, utf8 } from '../../backend/src/protocol/bytes.js'
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
import type { VerifiedStep } from './verify-history.js'

/** How many gateways showed the same tip. No proof can show that a tip is unspent: it is agreed upon, and only now. */
export interface TipAgreement {
  agreedBy: number
  /** How many were asked. */
  of: number
  /** When they were asked, in milliseconds since 1970. */
  at: number
}

/** How far gateways agree that a stream has no further chunk. */
export interface StreamEnd extends TipAgreement {
  /** As of the whole {@link Verification}, with all chunks. */
  verified: Verification['verified']
}

/** What was verified of a response, and what was only agreed upon. */
export interface Verification {
  /**
   * `headers`: all of it is in blocks that the chain tracker knows. `unproven`: some of it is in none, or none were asked. Of a
   * stream, this is about the first chunk.
   */
  verified: 'headers' | 'unproven'
  /** The output with the bytes. */
  outpoint: Outpoint
  /** The directories on the way, and the output with the bytes, each with the height of its block. */
  path: VerifiedStep[]
  /** The outputs that patches make these of. */
  bases?: VerifiedStep[]
  name?: string
  /** Of the ordinal at the root: with a name or a sequence. */
  ordinal?: { origin: Outpoint; sequence: number; outpoint: Outpoint }
  /** With a name, or the sequence -1. */
  tip?: TipAgreement
  /** Of a stream: resolves at its end, which is a tip, too; rejects if the body is not read so far. Not with HEAD. */
  end?: Promise<StreamEnd>
}

/** A response whose bytes are verified. A clone of it has no `verification`. */
export type VerifiedResponse = Response & { readonly verification: Verification }

/** What is asked about the bytes, as `fetch` does. */
export interface Question {
  method: 'GET' | 'HEAD'
  headers: Headers
}

/** The `Content-Type` for an inscribed one: as the gateway sends it. */
export function servedType(inscribed: string): string {
  return isMediaType(inscribed) ? typeField(inscribed) : UNTYPED
}

/** Longer text says no character set that it was not published with: what one chunk of a gateway has, in bytes. */
const MAX_TYPED = 256 * 1024

/**
 * Answers with the bytes of an output, or what of them the question asks for. What was published compressed is uncompressed, as
 * `fetch` does with what a gateway sends.
 *
 * @param options.isSite Whether it is what a host shows.
 * @param options.status 200 for what was asked for; with another, conditions and ranges are ignored.
 * @param options.maxBytes The most that is uncompressed, in bytes.
 */
export async function fileResponse(
  { contentType, body: published }: { contentType: string; body: Uint8Array },
  {
    question,
    verification,
    cache,
    isSite,
    status,
    maxBytes,
  }: {
    question: Question
    verification: Verification
    cache: string
    isSite: boolean
    status: number
    maxBytes: number
  },
): Promise<VerifiedResponse> {
  const inscribed = servedType(contentType)
  const isCompressed = TEXT_TYPES.test(essenceOf(contentType)) && isGzip(published)
  const plain = isCompressed ? await uncompressed(published, maxBytes) : undefined
  const isTyped = isSite && !isCompressed && published.length <= MAX_TYPED
  const type = isTyped ? textType(inscribed, published) : inscribed
  const body = plain ?? published
  // As of the gateway: the same bytes by another type are something else.
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
  // A copy: a view would keep the whole transaction in memory, and a response could be written through.
  const bytes = method === 'HEAD' ? null : body.slice(from, to)
  return verifiedResponse(bytes, { status: range === undefined ? status : 206, headers }, verification)
}

/** What is compressed by gzip; undefined if it is not, or longer than `maxBytes`. */
async function uncompressed(body: Uint8Array, maxBytes: number): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = []
  let left = maxBytes
  try {
    const stream = new Blob([body as Uint8Array<ArrayBuffer>]).stream()
    const reader = stream.pipeThrough(new DecompressionStream('gzip')).getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      left -= read.value.length
      if (left < 0) {
        await reader.cancel()
        return undefined
      }
      parts.push(read.value)
    }
  } catch {
    // It only begins as if it were.
    return undefined
  }
  return joinBytes(parts)
}

/** Answers that a site has it at another place. */
export function movedResponse(
  { status, location, cache }: { status: number; location: string; cache: string },
  verification: Verification,
): VerifiedResponse {
  const headers = headersOf(verification, { 'Cache-Control': cache, Location: location })
  return verifiedResponse(null, { status, headers }, verification)
}

/** Answers that verified directories do not have what was asked for. */
export function missingResponse(reason: string, verification: Verification): VerifiedResponse {
  const headers = headersOf(verification, { 'Cache-Control': 'no-store', 'Content-Type': 'application/json' })
  const body = JSON.stringify({ error: reason, code: 'NOT_FOUND' })
  return verifiedResponse(body, { status: 404, headers }, verification)
}

/** Answers with chunks, each verified before it is passed on. Nobody knows the length before the end. */
export function streamResponse(
  contentType: string,
  {
    question,
    verification,
    chunks,
    onCancel,
  }: {
    question: Question
    verification: Verification
    chunks: AsyncGenerator<Uint8Array>
    onCancel?: () => void
  },
): VerifiedResponse {
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
    // A chunk may have megabytes: the next one is fetched when this one has been read.
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

/** WebCrypto's, which pages have where they are secure; otherwise the SDK's, which is a lot slower. */
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
 * The range that is asked for (RFC 9110 14.2), its end not included. Several ranges, and headers that are not valid, mean the
 * whole body, as do an `If-Range` with another tag and an empty body.
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
