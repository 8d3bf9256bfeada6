import { Beef, MerklePath } from '@bsv/sdk'
import fc from 'fast-check'
import { fromHex, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { hash256 } from '../../../backend/src/protocol/transaction.js'
import { MerklePaths } from '../../../src/client/bundle.js'
import { bytes, mutated } from '../../support/protocol/arbitraries.js'
import {
  blockTxids,
  leafHex,
  levelsOf,
  pathOf,
  someOfABlock,
  wholeBlock,
} from '../../support/protocol/merkle-trees.js'

const HEIGHT = 900_000

const read = (...paths: MerklePath[]): MerklePaths =>
  new MerklePaths(
    paths.map((path) => Uint8Array.from(path.toBinary())),
    hash256,
  )

test('the paths of blocks of every size lead to the roots that the SDK finds', () => {
  for (let size = 1; size <= 20; size++) {
    const txids = blockTxids(size)
    const [root] = levelsOf(txids).at(-1) ?? []
    for (const [index, txid] of txids.entries()) {
      const path = pathOf(txids, { index, height: HEIGHT })
      expect(path.computeRoot(txid)).toBe(root)
      expect(read(path).claimedBlock(txid)).toEqual({ height: HEIGHT, root })
    }
  }
})

test('several transactions of a block may share a path', () => {
  fc.assert(
    fc.property(someOfABlock(40), ({ size, chosen }) => {
      const txids = blockTxids(size)
      const beef = new Beef()
      for (const index of chosen) beef.mergeBump(pathOf(txids, { index, height: HEIGHT }))
      const paths = read(...beef.bumps)
      const [root] = levelsOf(txids).at(-1) ?? []
      for (const index of chosen)
        expect(paths.claimedBlock(txids[index] ?? '')).toEqual({ height: HEIGHT, root })
    }),
  )
})

test('a path that lists a whole block needs nothing else', () => {
  for (let size = 1; size <= 9; size++) {
    const txids = blockTxids(size)
    const path = new MerklePath(HEIGHT, [txids.map((hash, offset) => ({ offset, hash, txid: true }))])
    for (const txid of txids)
      expect(read(path).claimedBlock(txid)).toEqual({ height: HEIGHT, root: path.computeRoot(txid) })
  }
})

test('the first path that has a transaction counts, and one that is in none has no place', () => {
  const [own = '', ...others] = blockTxids(3)
  const paths = read(
    pathOf([own, ...others], { index: 0, height: HEIGHT }),
    new MerklePath(5, [[{ offset: 0, hash: own, txid: true }]]),
  )
  expect(paths.claimedBlock(own)?.height).toBe(HEIGHT)
  expect(paths.has(own)).toBe(true)
  expect(paths.claimedBlock('ab'.repeat(32))).toBeUndefined()
  expect(paths.has('ab'.repeat(32))).toBe(false)
})

describe('a path that does not hold together', () => {
  const [left = '', right = ''] = blockTxids(2)
  const placed = (hex: string): unknown => new MerklePaths([fromHex(hex)], hash256).claimedBlock(left)

  test.each([
    ['a hole where a sibling belongs', `050202${leafHex(0, 2, left)}${leafHex(1, 0, right)}00`],
    ['no levels', '0500'],
    ['too many levels', `0521${'00'.repeat(33)}`],
    ['two leaves in one place', `050102${leafHex(0, 2, left)}${leafHex(0, 2, right)}`],
    ['a left node that is the right one again', `050102${leafHex(1, 2, left)}${leafHex(0, 1)}`],
    ['a transaction that stands alone and not first', `050101${leafHex(1, 2, left)}`],
    ['a height that no block has', `ff00000000010000000101${leafHex(0, 2, left)}`],
    ['a leaf beyond any block', `050101ff000000000100000002${toHex(reversed(fromHex(left)))}`],
    ['half a leaf', `050101${leafHex(0, 2, left).slice(0, 20)}`],
  ])('has %s', (_, hex) => {
    expect(() => placed(hex)).toThrow(expect.objectContaining({ code: 'BAD_PATH' }))
  })
})

test('any bytes are read or refused, and never in long', () => {
  const real = fc.integer({ min: 1, max: 40 }).map((size) => {
    const txids = blockTxids(size)
    return Uint8Array.from(pathOf(txids, { index: size - 1, height: HEIGHT }).toBinary())
  })
  fc.assert(
    fc.property(fc.oneof(bytes(), mutated(real)), (bump) => {
      try {
        new MerklePaths([bump], hash256).claimedBlock(blockTxids(40)[39] ?? '')
      } catch (error) {
        expect(error).toMatchObject({ name: 'ProofError', code: 'BAD_PATH' })
      }
    }),
  )
})

test('a path of very many leaves is worked out in one go', () => {
  const txids = blockTxids(4000)
  const bump = wholeBlock(txids, HEIGHT)
  let hashes = 0
  const paths = new MerklePaths([bump], (bytes) => {
    hashes++
    return hash256(bytes)
  })
  const [root] = levelsOf(txids).at(-1) ?? []
  for (const txid of txids.filter((_, at) => at % 100 === 0))
    expect(paths.claimedBlock(txid)?.root).toBe(root)
  // Each inner node once.
  expect(hashes).toBeLessThan(txids.length + 15)
})
