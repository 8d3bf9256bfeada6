import { randomUUID } from 'node:crypto'
import type { Request } from 'express'
import rangeParser from 'range-parser'
import { ascii } from '../../../backend/src/protocol/bytes.js'
import type { ByteRange } from '../../../backend/src/read/content.js'

/** One `range-spec` of bytes: an int-range or a suffix-range (RFC 9110 14.1.2). */
const SPEC = String.raw`(?:\d+-\d*|-\d+)`
/** A `ranges-specifier` of bytes; unit names are case-insensitive. */
const RANGES = new RegExp(String.raw`^bytes=(${SPEC}(?:[ \t]*,[ \t]*${SPEC})*)$`, 'i')

/** The most ranges of one request that are sent as parts; more are sent only if they combine into one. */
const MAX_PARTS = 8

/**
 * The ranges that a request asks for (RFC 9110 14.2), each with at least one byte of the body, in the order of the request;
 * `'unsatisfiable'`, or undefined for the complete body. Ranges of an empty body are ignored, and so are invalid headers and other
 * units. Several ranges that overlap, or are more than {@link MAX_PARTS}, are ignored unless they combine into one: the RFC leaves
 * that to the server, and parts then never have more bytes than the body. Ranges apply only to GET. `If-Range` has to be the tag,
 * compared strongly; a date never matches, as content has no date.
 *
 * @param body.tag The strong entity tag of the body.
 * @param body.length In bytes.
 * @param body.isCoded Whether it has a `Content-Encoding`, which parts cannot have: then only a single range is sent.
 */
export function requestedRanges(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  { tag, length, isCoded = false }: { tag: string; length: number; isCoded?: boolean },
): [ByteRange, ...ByteRange[]] | 'unsatisfiable' | undefined {
  const { range, 'if-range': ifRange } = headers
  if (method !== 'GET' || range === undefined || (ifRange !== undefined && ifRange !== tag)) return undefined
  if (length === 0) return undefined
  const specs = specsOf(range)
  if (specs === undefined) return undefined
  const cut = `bytes=${specs.map((spec) => cutSuffix(spec, length)).join()}`
  const ranges = rangeParser(length, cut, { combine: true })
  if (ranges === -1) return 'unsatisfiable'
  if (ranges === -2) return undefined
  const [first, ...others] = ranges.map(({ start, end }) => ({ from: start, length: end - start + 1 }))
  if (first === undefined) return undefined
  if (others.length === 0) return [first]
  const asked = specs.length > MAX_PARTS || isCoded ? undefined : rangeParser(length, cut)
  if (!Array.isArray(asked)) return undefined
  const sum = asked.reduce((bytes, { start, end }) => bytes + end - start + 1, 0)
  return sum === lengthOf([first, ...others]) ? [first, ...others] : undefined
}

function lengthOf(ranges: readonly { length: number }[]): number {
  return ranges.reduce((sum, { length }) => sum + length, 0)
}

/** Several ranges of a body as parts of one (RFC 9110 14.6, RFC 2046 5.1). */
export class Multipart {
  /** Random, so that no content can contain it. */
  private readonly boundary = randomUUID()
  readonly contentType = `multipart/byteranges; boundary=${this.boundary}`
  private readonly parts: { head: Uint8Array; range: ByteRange }[]
  private readonly end = ascii(`\r\n--${this.boundary}--\r\n`)
  /** The bytes of everything that {@link chunks} yields. */
  readonly length: number

  /** @param body The type of each part, and the length of the body in bytes. */
  constructor(ranges: readonly ByteRange[], body: { contentType: string; length: number }) {
    this.parts = ranges.map((range, at) => ({
      head: ascii(
        `${at === 0 ? '' : '\r\n'}--${this.boundary}\r\nContent-Type: ${body.contentType}\r\nContent-Range: ${contentRange(range, body.length)}\r\n\r\n`,
      ),
      range,
    }))
    this.length = lengthOf([...ranges, ...this.parts.map(({ head }) => head), this.end])
  }

  /** @param body Its bytes, or a function that reads a range as a whole or in chunks. */
  async *chunks(
    body: Uint8Array | ((range: ByteRange) => Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>),
  ): AsyncGenerator<Uint8Array> {
    for (const { head, range } of this.parts) {
      yield head
      const { from, length } = range
      const bytes = typeof body === 'function' ? body(range) : body.subarray(from, from + length)
      if (bytes instanceof Uint8Array) yield bytes
      else yield* bytes
    }
    yield this.end
  }
}

/** The `Content-Range` for a part of a body of `length` bytes (RFC 9110 14.4). */
export function contentRange(part: ByteRange, length: number): string {
  return `bytes ${part.from}-${part.from + part.length - 1}/${length}`
}

/** The ranges of a valid header. The parser also accepts invalid ones: with inner spaces, or an end before the start. */
function specsOf(header: string): string[] | undefined {
  const specs = RANGES.exec(header)?.[1]?.split(/[ \t]*,[ \t]*/)
  return specs?.some(isReversed) ? undefined : specs
}

function isReversed(spec: string): boolean {
  const [first = '', last = ''] = spec.split('-')
  // Numbers may be of any size, and two may differ only in the last digit.
  return first !== '' && last !== '' && BigInt(first) > BigInt(last)
}

/** A suffix longer than the body means the complete body (RFC 9110 14.1.2); the parser calls it unsatisfiable. */
function cutSuffix(spec: string, length: number): string {
  return spec.startsWith('-') && Number(spec.slice(1)) > length ? `-${length}` : spec
}
