import fc from 'fast-check'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'

export const bytes = (maxLength = 300): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength, size: 'max' })

export const bytesOf = (length: number): fc.Arbitrary<Uint8Array> =>
  fc.uint8Array({ minLength: length, maxLength: length })

const txid: fc.Arbitrary<string> = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((hash) => Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join(''))

export const outpoint: fc.Arbitrary<Outpoint> = fc.record({ txid, vout: fc.nat({ max: 0xffffffff }) })

/** One thing to do to bytes: cut them off, change one, put some in, take one out. */
export const edits: fc.Arbitrary<(source: Uint8Array) => Uint8Array> = fc
  .tuple(fc.nat(), bytes(4), fc.constantFrom('cut', 'change', 'insert', 'remove'))
  .map(([where, extra, kind]) => (source) => {
    const at = where % (source.length + 1)
    const before = source.slice(0, at)
    if (kind === 'cut') return before
    const skip = kind === 'insert' ? 0 : kind === 'change' ? extra.length : 1
    const between = kind === 'remove' ? new Uint8Array() : extra
    return Uint8Array.of(...before, ...between, ...source.slice(at + skip))
  })

/** Bytes with one of the {@link edits} done to them. */
export function mutated(original: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  return fc.tuple(original, edits).map(([source, edit]) => edit(source))
}
