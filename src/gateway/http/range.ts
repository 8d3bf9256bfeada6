import type { Request } from 'express'
import rangeParser from 'range-parser'
import type { ByteRange } from '../../../backend/src/read/content.js'

/** One `range-spec` of bytes: an int-range or a suffix-range (RFC 9110 14.1.2). */
const SPEC = String.raw`(?:\d+-\d*|-\d+)`
/** A `ranges-specifier` of bytes; the names of units are case-insensitive. */
const RANGES = new RegExp(String.raw`^bytes=(${SPEC}(?:[ \t]*,[ \t]*${SPEC})*)$`, 'i')

/**
 * The range that a request asks for (RFC 9110 14.2): one range with at least one byte of the body, `'unsatisfiable'`, or
 * undefined for the complete body. Of an empty body there are no parts: the range is ignored. A header that is not valid, or of another unit, is ignored. So are several ranges, unless
 * they combine into one: the RFC leaves a server the choice, and many small parts cost more than the body. Ranges apply to
 * GET alone; on HEAD the header is ignored. `If-Range` has to be the tag, compared strongly. A date never matches, as content
 * has no date.
 *
 * @param body.tag The strong entity tag of the body.
 * @param body.length In bytes.
 */
export function requestedRange(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  { tag, length }: { tag: string; length: number },
): ByteRange | 'unsatisfiable' | undefined {
  const { range, 'if-range': ifRange } = headers
  if (method !== 'GET' || range === undefined || (ifRange !== undefined && ifRange !== tag)) return undefined
  if (length === 0) return undefined
  const specs = specsOf(range)
  if (specs === undefined) return undefined
  const cut = specs.map((spec) => cutSuffix(spec, length))
  const ranges = rangeParser(length, `bytes=${cut.join()}`, { combine: true })
  if (ranges === -1) return 'unsatisfiable'
  if (ranges === -2) return undefined
  const [first, ...others] = ranges
  if (first === undefined || others.length > 0) return undefined
  return { from: first.start, length: first.end - first.start + 1 }
}

/** The `Content-Range` of a part of a body that has `length` bytes (RFC 9110 14.4). */
export function contentRange(part: ByteRange, length: number): string {
  return `bytes ${part.from}-${part.from + part.length - 1}/${length}`
}

/** The ranges of a valid header. The parser accepts some that are not: with spaces inside, or an end before the start. */
function specsOf(header: string): string[] | undefined {
  const specs = RANGES.exec(header)?.[1]?.split(/[ \t]*,[ \t]*/)
  return specs?.some(isReversed) ? undefined : specs
}

function isReversed(spec: string): boolean {
  const [first = '', last = ''] = spec.split('-')
  // Numbers may be of any size, and two of them may differ in their last digit alone.
  return first !== '' && last !== '' && BigInt(first) > BigInt(last)
}

/** A suffix longer than the body means the complete body (RFC 9110 14.1.2); the parser calls it unsatisfiable. */
function cutSuffix(spec: string, length: number): string {
  return spec.startsWith('-') && Number(spec.slice(1)) > length ? `-${length}` : spec
}
