import { MerklePath } from '@bsv/sdk'
import fc from 'fast-check'
import { nativeHash256 as hash256 } from '../../../backend/src/graph/native-hash.js'
import { fromHex, joinBytes, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { varint } from './raw-transaction.js'

/** The txids of a block. */
export const blockTxids = (size: number): string[] =>
  Array.from({ length: size }, (_, at) => toHex(hash256(Uint8Array.of(at & 0xff, at >> 8, size))))

/** The levels of its tree, transactions first, as BRC-74 stands on them: the last of an odd level stands twice. */
export function levelsOf(txids: string[]): string[][] {
  const levels = [txids]
  for (let level = txids; level.length > 1; ) {
    const above: string[] = []
    for (let at = 0; at < level.length; at += 2) {
      const pair = [level[at] ?? '', level[at + 1] ?? level[at] ?? '']
      above.push(toHex(reversed(hash256(joinBytes(pair.map((hash) => reversed(fromHex(hash))))))))
    }
    levels.push(above)
    level = above
  }
  return levels
}

/** The path of one transaction in a tree of these levels. */
export function pathIn(levels: string[][], { index, height }: { index: number; height: number }): MerklePath {
  const own = { offset: index, hash: levels[0]?.[index] ?? '', txid: true }
  const path = levels.slice(0, -1).map((level, above) => {
    const offset = (index >> above) ^ 1
    const hash = level[offset]
    return [hash === undefined ? { offset, duplicate: true } : { offset, hash }]
  })
  const [lowest = [], ...rest] = path
  return new MerklePath(height, [[...lowest, own].sort((a, b) => a.offset - b.offset), ...rest])
}

/** The path of one transaction. */
export const pathOf = (txids: string[], place: { index: number; height: number }): MerklePath =>
  pathIn(levelsOf(txids), place)

/** The size of a block, and the places of some of its transactions. */
export const someOfABlock = (most: number): fc.Arbitrary<{ size: number; chosen: number[] }> =>
  fc
    .integer({ min: 1, max: most })
    .chain((size) =>
      fc.record({ size: fc.constant(size), chosen: fc.uniqueArray(fc.nat(size - 1), { minLength: 1 }) }),
    )

/** A leaf in hex: its place, flags, and hash unless flagged away. */
export const leafHex = (offset: number, flags: number, hash = ''): string =>
  toHex(varint(offset)) + toHex(Uint8Array.of(flags)) + toHex(reversed(fromHex(hash)))

/** The path that lists a whole block, and nothing above its transactions. */
export function wholeBlock(txids: string[], height: number): Uint8Array {
  const leaves = txids.map((hash, offset) => leafHex(offset, 2, hash))
  return fromHex(`${toHex(varint(height))}01${toHex(varint(txids.length))}${leaves.join('')}`)
}
