import fc from 'fast-check'
import { concatBytes, fromHex } from '../../../backend/src/protocol/bytes.js'
import { bytes } from '../../../test/support/protocol/arbitraries.js'

/** The longest input, in bytes: longer ones would only meet limits, and few could be sent a second. */
const MAX_BYTES = 256 * 1024

/** Counts and lengths that exceed the data after them. */
export const HUGE_COUNTS = [
  'fc',
  'fdffff',
  'fe00000080',
  'feffffffff',
  'ff0000000001000000',
  'ffffffffffffff1f00',
  'ff0000000000002000',
  'ffffffffffffffff7f',
  'ffffffffffffffffff',
  // Small numbers in more bytes than they need.
  'fd0100',
  'fe01000000',
  'ff0100000000000000',
].map(fromHex)

const EXTREMES = ['00', 'ff', '7f', '80', '0000', 'ffff', '00000000', 'ffffffff', '00000080', 'ffffff7f'].map(
  fromHex,
)

type Edit = (source: Uint8Array) => Uint8Array

/** One edit of bytes; numbers choose the place. */
function edits(others: readonly Uint8Array[]): fc.Arbitrary<Edit> {
  const at = fc.nat({ max: 2 ** 30 })
  const short = fc.nat({ max: 64 })
  const put = (extra: fc.Arbitrary<Uint8Array>, isInstead: boolean): fc.Arbitrary<Edit> =>
    fc.tuple(at, extra).map(([place, more]) => (source) => {
      const from = place % (source.length + 1)
      return concatBytes(
        source.subarray(0, from),
        more,
        source.subarray(from + (isInstead ? more.length : 0)),
      )
    })
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(at, fc.nat({ max: 7 })).map(
        ([place, bit]): Edit =>
          (source) =>
            flipped(source, place, bit),
      ),
    },
    {
      weight: 2,
      arbitrary: at.map(
        (place): Edit =>
          (source) =>
            source.subarray(0, place % (source.length + 1)),
      ),
    },
    { weight: 2, arbitrary: put(fc.constantFrom(...HUGE_COUNTS), true) },
    put(fc.constantFrom(...HUGE_COUNTS), false),
    put(fc.constantFrom(...EXTREMES), true),
    put(bytes(8), false),
    put(bytes(8), true),
    fc.tuple(at, short).map(
      ([place, length]): Edit =>
        (source) => {
          const from = place % (source.length + 1)
          return concatBytes(source.subarray(0, from), source.subarray(from + length))
        },
    ),
    // A repeated section.
    fc.tuple(at, fc.nat({ max: 200 }), fc.integer({ min: 2, max: 60 })).map(
      ([place, length, times]): Edit =>
        (source) => {
          const from = place % (source.length + 1)
          const section = source.subarray(from, from + length)
          return concatBytes(
            source.subarray(0, from),
            ...Array.from({ length: times }, () => section),
            source.subarray(from + length),
          )
        },
    ),
    // The start of one, and the end of another.
    fc.tuple(at, at, fc.constantFrom(...others)).map(
      ([place, there, other]): Edit =>
        (source) =>
          concatBytes(
            source.subarray(0, place % (source.length + 1)),
            other.subarray(there % (other.length + 1)),
          ),
    ),
  )
}

function flipped(source: Uint8Array, place: number, bit: number): Uint8Array {
  if (source.length === 0) return source
  const copy = Uint8Array.from(source)
  const at = place % copy.length
  copy[at] = (copy[at] ?? 0) ^ (1 << bit)
  return copy
}

/** Some of these bytes, as they are or with a few edits. */
export function mutated(sources: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  return fc
    .tuple(fc.constantFrom(...sources), fc.array(edits(sources), { maxLength: 5 }))
    .map(([source, all]) => all.reduce((result, edit) => edit(result).subarray(0, MAX_BYTES), source))
}

/** Text with edits in its UTF-8, which may become invalid. */
export function mutatedText(sources: readonly string[]): fc.Arbitrary<Uint8Array> {
  return mutated(sources.map((source) => new Uint8Array(Buffer.from(source, 'utf8'))))
}
