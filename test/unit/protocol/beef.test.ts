import { BeefError, readBeefFrame } from '../../../backend/src/protocol/beef.js'
import { fromHex, joinBytes } from '../../../backend/src/protocol/bytes.js'
import { countParts } from '../../../backend/src/protocol/transaction.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { varint } from '../../support/protocol/raw-transaction.js'

const V1 = fromHex('0100beef')
const EMPTY_TRANSACTION = new Uint8Array(10)
const zeros = (length: number): Uint8Array => new Uint8Array(length)

/** A transaction with no inputs and this many outputs of nothing. */
const wide = (outputs: number): Uint8Array =>
  joinBytes([zeros(4), varint(0), varint(outputs), zeros(9 * outputs), zeros(4)])

/** A merkle path of one level with this many leaves that are flagged away. */
const leafy = (leaves: number): Uint8Array => {
  const leaf = Uint8Array.of(0, 1)
  const level = new Uint8Array(2 * leaves)
  for (let at = 0; at < level.length; at += 2) level.set(leaf, at)
  return joinBytes([varint(1), Uint8Array.of(1), varint(leaves), level])
}

test('a frame holds paths and transactions as they stand', () => {
  const chain = new FakeChain()
  const mint = chain.mint('a')
  const frame = readBeefFrame(beefOf(mint, { with: [chain.genesis] }))
  expect(frame.bumps).toHaveLength(2)
  expect(frame.transactions.map(({ raw }) => raw)).toEqual([chain.genesis.raw, mint.raw])
})

test('a frame that a Buffer holds is read, and the Buffer left as it was', () => {
  const beef = Buffer.from(beefOf(new FakeChain().mint('a')))
  const before = beef.toString('hex')
  readBeefFrame(beef)
  expect(beef.toString('hex')).toBe(before)
})

describe('what would only cost memory is refused', () => {
  test.each([
    ['a count of merkle paths', [V1, fromHex('fe00000002'), zeros(1000)]],
    ['a count of transactions', [V1, varint(0), fromHex('feffffffff'), zeros(1000)]],
    ['a count beyond 2^53', [V1, varint(0), fromHex('ffffffffffffffffff')]],
    ['a count of inputs', [V1, varint(0), varint(1), zeros(4), fromHex('fe00000001'), zeros(1000)]],
    ['a count of outputs', [V1, varint(0), varint(1), zeros(5), fromHex('fe00000001'), zeros(1000)]],
    ['a count of leaves', [V1, varint(1), fromHex('0101fe00000001'), zeros(1000)]],
    [
      'leaves of many paths',
      [V1, varint(2), leafy(200_000), leafy(200_000), varint(1), EMPTY_TRANSACTION, zeros(1)],
    ],
  ])('%s', (_, parts) => {
    expect(() => readBeefFrame(joinBytes(parts))).toThrow(BeefError)
    expect(() => readBeefFrame(joinBytes(parts))).toThrow(/more than|2\^53 or more/)
  })

  test('outputs are counted, and not read before somebody asks for them', () => {
    const one = joinBytes([wide(90_000), zeros(1)])
    const { transactions } = readBeefFrame(joinBytes([V1, varint(0), varint(12), ...Array(12).fill(one)]))
    const counts = transactions.map((each) => countParts(each).outputs)
    expect(counts).toEqual(Array(12).fill(90_000))
    expect(transactions[11]?.outputs[89_999]).toMatchObject({ satoshis: 0, lockingScript: new Uint8Array() })
  })
})
