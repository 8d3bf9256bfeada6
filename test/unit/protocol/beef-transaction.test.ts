import { PrivateKey, Transaction } from '@bsv/sdk'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { readBeefTransaction, writeBeef } from '../../../backend/src/protocol/beef-transaction.js'
import { recordsOf } from '../../support/client/name-proofs.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'

const open = { satoshis: 10, lockingScript: OPEN_LOCK }

/** A chain of transactions, each of which spends two outputs of the one before. */
function diamonds(chain: FakeChain, length: number): FakeTransaction[] {
  const made = [chain.spend({ inputs: [], outputs: [open, open] })]
  while (made.length < length) {
    const transaction = made.at(-1) as FakeTransaction
    const inputs = [0, 1].map((vout) => ({ transaction, vout }))
    made.push(chain.spend({ inputs, outputs: [open, open] }))
  }
  return made
}

const idsOf = (transaction: Transaction): string[] =>
  transaction.inputs.map(({ sourceTransaction }) => sourceTransaction?.id('hex') ?? '')

test('a transaction is read as the SDK reads it', () => {
  const chain = new FakeChain()
  const [first, second, third] = diamonds(chain, 3) as [FakeTransaction, FakeTransaction, FakeTransaction]
  const beef = encodeBeef(recordsOf([first, second, third], [second, third]))
  const read = readBeefTransaction(beef)
  const bySdk = Transaction.fromBEEF(Array.from(beef))
  expect(read.id('hex')).toBe(third.txid)
  expect(read.toBEEF()).toEqual(bySdk.toBEEF())
  expect(idsOf(read)).toEqual([second.txid, second.txid])
})

test('what is asked for is read with what it stands on, and nothing else', () => {
  const chain = new FakeChain()
  const [first, second] = diamonds(chain, 2) as [FakeTransaction, FakeTransaction]
  const stray = chain.spend({ inputs: [], outputs: [open] })
  const beef = encodeBeef(recordsOf([first, second, stray], [second]))
  const read = readBeefTransaction(beef, { txid: second.txid })
  expect(idsOf(read)).toEqual([first.txid, first.txid])
  const written = Transaction.fromBEEF(Array.from(writeBeef(read)))
  expect(written.id('hex')).toBe(second.txid)
  expect(writeBeef(read)).toEqual(encodeBeef(recordsOf([first, second], [second])))
  expect(() => readBeefTransaction(beef, { txid: 'ab'.repeat(32) })).toThrow(/does not contain abab/)
})

test('of an Atomic BEEF it is the subject', () => {
  const coin = coinsFor(new PrivateKey(3), 5)
  const read = readBeefTransaction(Uint8Array.from(coin.toAtomicBEEF()))
  expect(read.id('hex')).toBe(coin.id('hex'))
  expect(read.merklePath?.computeRoot(coin.id('hex'))).toBe(coin.merklePath?.computeRoot(coin.id('hex')))
})

test('ancestors that are reached in 2^40 ways are each read and written once', () => {
  const made = diamonds(new FakeChain(), 41)
  const beef = encodeBeef(recordsOf(made, made.slice(1)))
  expect(writeBeef(readBeefTransaction(beef))).toEqual(beef)
})

test('more ancestors than nodes relay are refused', () => {
  const made = diamonds(new FakeChain(), 1_002)
  const beef = encodeBeef(recordsOf(made, made.slice(1)))
  expect(() => readBeefTransaction(beef)).toThrow(/has more than 1000 unproven ancestors/)
})

test.each([
  ['bytes that are none', Uint8Array.of(1, 2, 3)],
  ['none at all', new Uint8Array()],
])('%s are no BEEF', (_, bytes) => {
  expect(() => readBeefTransaction(bytes)).toThrow(expect.objectContaining({ code: 'BAD_BEEF' }))
})
