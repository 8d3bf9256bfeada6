import rangeParser from 'range-parser'
import type { ByteRange } from '../../../backend/src/graph/graph-store.js'

/** One `range-spec` of bytes: an int-range or a suffix-range (RFC 9110 14.1.2). */
const SPEC = String.raw`(?:\d+-\d*|-\d+)`
/** A `ranges-specifier` of bytes; the names of units are case-insensitive. */
const RANGES = new RegExp(String.raw`^bytes=(${SPEC}(?:[ \t]*,[ \t]*${SPEC})*)$`, 'i')

/**
 * What a GET asks for of a body of `length` bytes (RFC 9110 14.2): one range of it, which has at least one byte; the
 * whole; or nothing that the body has. A header that is not valid, or of another unit, asks for the whole. So do
 * several ranges, unless they make up one together: the RFC leaves a server the choice, and many small parts cost
 * more than the body.
 *
 * @param options.range The `Range` header.
 * @param options.ifRange The `If-Range` header: ranges count only where it is the tag, compared strongly. A date never
 *   is, as content has no date here.
 * @param options.tag The strong entity tag of the body.
 */
export function askedRange(options: {
  range: string | undefined
  ifRange: string | undefined
  tag: string
  length: number
}): ByteRange | 'whole' | 'unsatisfiable' {
  const { range, ifRange, tag, length } = options
  if (range === undefined || (ifRange !== undefined && ifRange !== tag)) return 'whole'
  const specs = specsOf(range)
  if (specs === undefined) return 'whole'
  const cut = specs.map((spec) => cutSuffix(spec, length))
  const ranges = rangeParser(length, `bytes=${cut.join()}`, { combine: true })
  if (ranges === -1) return 'unsatisfiable'
  if (ranges === -2) return 'whole'
  const [first, ...others] = ranges
  if (first === undefined || others.length > 0) return 'whole'
  return { from: first.start, length: first.end - first.start + 1 }
}

/** The `Content-Range` of a part of a body that has `length` bytes (RFC 9110 14.4). */
export function contentRange(part: ByteRange, length: number): string {
  return `bytes ${part.from}-${part.from + part.length - 1}/${length}`
}

/** The ranges of a valid header. The parser takes some that are not: with spaces inside, or that end before they start. */
function specsOf(header: string): string[] | undefined {
  const specs = RANGES.exec(header)?.[1]?.split(/[ \t]*,[ \t]*/)
  return specs?.some(isReversed) ? undefined : specs
}

function isReversed(spec: string): boolean {
  const [first = '', last = ''] = spec.split('-')
  // Numbers may be of any size, and two of them may differ in their last digit alone.
  return first !== '' && last !== '' && BigInt(first) > BigInt(last)
}

/** A suffix longer than the body is the body (RFC 9110 14.1.2); the parser takes it for none that the body has. */
function cutSuffix(spec: string, length: number): string {
  return spec.startsWith('-') && Number(spec.slice(1)) > length ? `-${length}` : spec
}
