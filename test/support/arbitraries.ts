import fc from 'fast-check'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'

export const bytes = (maxLength = 300): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength, size: 'max' })

export const bytesOf = (length: number): fc.Arbitrary<Uint8Array> =>
  fc.uint8Array({ minLength: length, maxLength: length })

const txid: fc.Arbitrary<string> = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((hash) => Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join(''))

export const outpoint: fc.Arbitrary<Outpoint> = fc.record({ txid, vout: fc.nat({ max: 0xffffffff }) })

/** Bytes with one thing done to them: cut off, one byte changed, some bytes put in, some taken out. */
export function mutated(original: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  return fc
    .tuple(original, fc.nat(), bytes(4), fc.constantFrom('cut', 'change', 'insert', 'remove'))
    .map(([source, where, extra, kind]) => {
      const at = where % (source.length + 1)
      const before = source.slice(0, at)
      if (kind === 'cut') return before
      const skip = kind === 'insert' ? 0 : kind === 'change' ? extra.length : 1
      const between = kind === 'remove' ? new Uint8Array() : extra
      return Uint8Array.of(...before, ...between, ...source.slice(at + skip))
    })
}
