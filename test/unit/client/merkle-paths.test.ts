import { Beef, MerklePath } from '@bsv/sdk'
import fc from 'fast-check'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { hash256 } from '../../../backend/src/protocol/transaction.js'
import { MerklePaths } from '../../../src/client/bundle.js'
import { blockTxids, leafHex, levelsOf, pathOf, someOfABlock } from '../../support/protocol/merkle-trees.js'

const HEIGHT = 900_000

const read = (...paths: MerklePath[]): MerklePaths =>
  new MerklePaths(
    paths.map((path) => Uint8Array.from(path.toBinary())),
    hash256,
  )

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
    ['half a leaf', `050101${leafHex(0, 2, left).slice(0, 20)}`],
  ])('has %s', (_, hex) => {
    expect(() => placed(hex)).toThrow(expect.objectContaining({ code: 'BAD_PATH' }))
  })
})
