import { Beef, MerklePath as SdkPath, Utils } from '@bsv/sdk'
import fc from 'fast-check'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { fromHex, joinBytes, toHex } from '../../../backend/src/protocol/bytes.js'
import { cutPath, MerklePath } from '../../../backend/src/protocol/merkle-path.js'
import { mutated } from '../../support/protocol/arbitraries.js'
import {
  blockTxids,
  leafHex,
  levelsOf,
  pathOf,
  someOfABlock,
  wholeBlock,
} from '../../support/protocol/merkle-trees.js'
import { varint } from '../../support/protocol/raw-transaction.js'

const HEIGHT = 900_000

class PathError extends Error {}

const read = (bump: Uint8Array, hash = nativeHash256): MerklePath =>
  new MerklePath(bump, { hash, fail: (message) => new PathError(message) })

const readBySdk = (bump: Uint8Array): SdkPath =>
  SdkPath.fromReader(new Utils.ReaderUint8Array(bump.slice()), false)

/** The path of several transactions of a block, as the SDK puts it together. */
function merged({ size, chosen }: { size: number; chosen: number[] }): Uint8Array {
  const beef = new Beef()
  for (const index of chosen) beef.mergeBump(pathOf(blockTxids(size), { index, height: HEIGHT }))
  return Uint8Array.from(beef.bumps[0]?.toBinary() ?? [])
}

const cut = (path: MerklePath, txid: string): Uint8Array => cutPath(path, txid) ?? new Uint8Array()
const cutBySdk = (bump: Uint8Array, txid: string): string => readBySdk(bump).extract([txid]).toHex()
const rootOf = (txids: string[]): string | undefined => levelsOf(txids).at(-1)?.[0]

test('a path leads to the root of its block, and is cut down to one transaction as the SDK does it', () => {
  fc.assert(
    fc.property(someOfABlock(12), ({ size, chosen }) => {
      const bump = merged({ size, chosen })
      const path = read(bump)
      expect([path.height, path.root]).toEqual([HEIGHT, rootOf(blockTxids(size))])
      for (const txid of path.txids) expect(toHex(cut(path, txid))).toBe(cutBySdk(bump, txid))
    }),
    { numRuns: 15 },
  )
})

test('a path that lists a whole block is cut down to any of its transactions', () => {
  for (const size of [1, 2, 3, 5, 8, 11]) {
    const txids = blockTxids(size)
    const bump = wholeBlock(txids, HEIGHT)
    const path = read(bump)
    expect([...path.txids]).toEqual(txids)
    for (const [index, txid] of txids.entries()) {
      expect(readBySdk(cut(path, txid)).computeRoot(txid)).toBe(rootOf(txids))
      // The SDK forgets what stands beside the last one, where that stands twice.
      const isTwice = size % 2 === 1 && index === size - 1 && size > 1
      if (!isTwice) expect(toHex(cut(path, txid))).toBe(cutBySdk(bump, txid))
    }
  }
})

test('flags of leaves beside a transaction are kept as the SDK keeps them', () => {
  const [left = '', right = ''] = blockTxids(2)
  for (const [one = 0, other = 0] of [
    [2, 2],
    [0, 2],
    [6, 0],
    [0xfe, 0xfc],
  ]) {
    const bump = fromHex(`050102${leafHex(0, one, left)}${leafHex(1, other, right)}`)
    for (const txid of [left, right]) expect(toHex(cut(read(bump), txid))).toBe(cutBySdk(bump, txid))
  }
})

test('a path tells the places of transactions, and how deep they stand', () => {
  const txids = blockTxids(5)
  const path = read(wholeBlock(txids, HEIGHT))
  expect(path.depth).toBe(3)
  expect(txids.map((txid) => path.offsetOf(txid))).toEqual([0, 1, 2, 3, 4])
  const [alone = ''] = blockTxids(1)
  expect(read(wholeBlock([alone], HEIGHT))).toMatchObject({ depth: 0, root: alone })
})

test('a txid that no leaf has cannot be cut out', () => {
  const path = read(wholeBlock(blockTxids(3), HEIGHT))
  expect(path.has('ab'.repeat(32))).toBe(false)
  expect(cutPath(path, 'ab'.repeat(32))).toBeUndefined()
})

test('whatever is read of changed bytes, the SDK reads the same', () => {
  let taken = 0
  fc.assert(
    fc.property(mutated(someOfABlock(7).map(merged)), (bump) => {
      let path: MerklePath
      try {
        path = read(bump)
      } catch (error) {
        expect(error).toBeInstanceOf(PathError)
        return
      }
      taken++
      const other = readBySdk(bump)
      expect(path.height).toBe(other.blockHeight)
      for (const txid of path.txids) {
        expect(other.computeRoot(txid)).toBe(path.root)
        expect(readBySdk(cut(path, txid)).computeRoot(txid)).toBe(path.root)
      }
    }),
    { numRuns: 150 },
  )
  expect(taken).toBeGreaterThan(0)
})

describe('a path that does not hold together', () => {
  const txids = blockTxids(4)
  const [a = '', b = '', c = '', d = ''] = txids
  const [, [ab = '', cd = ''] = []] = levelsOf(txids)
  const lowest = `02${leafHex(0, 2, a)}${leafHex(1, 0, b)}`

  test('is none where all is well', () => {
    for (const above of [`01${leafHex(1, 0, cd)}`, `02${leafHex(0, 0, ab)}${leafHex(1, 0, cd)}`])
      expect(read(fromHex(`0502${lowest}${above}`)).root).toBe(rootOf(txids))
  })

  test.each([
    ['no sibling', `0502${lowest}00`, 'is incomplete'],
    ['no sibling at the bottom', `050201${leafHex(0, 2, a)}01${leafHex(1, 0, cd)}`, 'is incomplete'],
    ['a sibling for one of two alone', `050203${lowest.slice(2)}${leafHex(2, 2, c)}00`, 'is incomplete'],
    ['two roots', `0502${lowest}02${leafHex(0, 0, cd)}${leafHex(1, 0, cd)}`, 'not the hash of those below'],
    [
      'a node flagged away',
      `0502${lowest}02${leafHex(0, 1)}${leafHex(1, 0, cd)}`,
      'not the hash of those below',
    ],
    ['a left node that is the right one again', `050102${leafHex(0, 1)}${leafHex(1, 2, a)}`, 'is incomplete'],
    ['the left half missing', `050102${leafHex(2, 2, c)}${leafHex(3, 2, d)}`, 'is incomplete'],
    ['no transactions', '05010101', 'unexpected end'],
    ['nothing but what stands twice', `050101${leafHex(1, 1)}`, 'has no leaf for a transaction'],
    ['an empty lowest level', '050100', 'has no leaf for a transaction'],
    ['no levels', '0500', '1 to 32 levels'],
    ['too many levels', `0521${'00'.repeat(33)}`, '1 to 32 levels'],
    ['an inner node flagged as a transaction', `0502${lowest}01${leafHex(1, 2, cd)}`, 'an inner node'],
    ['fewer levels', `050202${leafHex(4, 2, a)}${leafHex(5, 0, b)}01${leafHex(3, 0, cd)}`, 'fewer levels'],
    ['two leaves in one place', `050102${leafHex(0, 2, a)}${leafHex(0, 2, b)}`, 'two leaves'],
    ['a place beyond any block', `050101${leafHex(2 ** 31, 2, a)}`, 'beyond any block'],
    ['a height that no block has', `fe00000080${'01'}01${leafHex(0, 2, a)}`, 'is not a block height'],
    ['more leaves than any', '0501fee1930400', 'more than the 300000 allowed'],
    ['a byte too many', `0502${lowest}01${leafHex(1, 0, cd)}00`, 'extra bytes'],
  ])('has %s', (_, hex, message) => {
    expect(() => read(fromHex(hex))).toThrow(PathError)
    expect(() => read(fromHex(hex))).toThrow(message)
  })
})

describe('the work that a path takes', () => {
  /** How often it hashes for all that can be asked of a path. */
  function hashesFor(bump: Uint8Array): number {
    let hashes = 0
    const path = read(bump, (bytes) => {
      hashes++
      return nativeHash256(bytes)
    })
    for (const txid of path.txids) cutPath(path, txid)
    return hashes
  }

  test.each([1024, 1001])('is one hash for each of %d leaves at the most', (size) => {
    const txids = Array.from({ length: size }, (_, at) => at.toString(16).padStart(64, '0'))
    expect(hashesFor(wholeBlock(txids, HEIGHT))).toBeLessThanOrEqual(size + 32)
  })

  test('is one hash a level for a path of one', () => {
    const path = pathOf(blockTxids(300), { index: 77, height: HEIGHT })
    expect(hashesFor(Uint8Array.from(path.toBinary()))).toBe(9)
  })

  test('is no more for transactions far from each other, each with all that stands beside it', () => {
    const levels = 20
    const count = 500
    // Leaves 2^11 apart, so that each has eleven levels to itself, on which all that stands beside it stands twice.
    const apart = 2 ** 11
    const level = (above: number): Uint8Array[] => {
      const isOwn = above < 11
      const each = (leaf: (place: number) => string) =>
        Array.from({ length: count }, (_, at) => fromHex(leaf(at * apart)))
      const doubled = isOwn ? each((place) => leafHex((place >> above) ^ 1, 1)) : []
      const own = above === 0 ? each((place) => leafHex(place, 2, 'ab'.repeat(32))) : []
      const last = (count - 1) >> (above - 11)
      const beyond = !isOwn && last % 2 === 0 ? [fromHex(leafHex(last + 1, 1))] : []
      const leaves = [...doubled, ...own, ...beyond]
      return [varint(leaves.length), ...leaves]
    }
    const all = Array.from({ length: levels }, (_, at) => level(at)).flat()
    const bump = joinBytes([varint(HEIGHT), Uint8Array.of(levels), ...all])
    expect(hashesFor(bump)).toBeLessThanOrEqual(count * 12 + 32)
  })
})

test('paths of one block are merged as the SDK merges them', () => {
  fc.assert(
    fc.property(someOfABlock(12), ({ size, chosen }) => {
      const txids = blockTxids(size)
      const whole = read(wholeBlock(txids, HEIGHT))
      const transactions = chosen.map((index) => {
        const { height, root } = whole
        const merklePath = cut(whole, txids[index] ?? '')
        return { raw: fromHex('01000000000000000000'), proof: { merklePath, height, root } }
      })
      const expected = new Beef()
      for (const { proof } of transactions) expected.mergeBump(readBySdk(proof.merklePath))
      const { bumps } = Beef.fromBinary(Array.from(encodeBeef(transactions)))
      expect(bumps.map((bump) => bump.toHex())).toEqual(expected.bumps.map((bump) => bump.toHex()))
    }),
    { numRuns: 15 },
  )
})
