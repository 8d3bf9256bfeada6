import { Beef, Transaction } from '@bsv/sdk'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { assembleBeef } from '../../../backend/src/graph/write-beef.js'
import { blockOfTwo, proofIn, recordOf } from '../../support/protocol/block.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

const output = { satoshis: 1, lockingScript: OPEN_LOCK }
const make = (chain: FakeChain, ...parents: FakeTransaction[]): FakeTransaction =>
  chain.spend({ inputs: parents.map((transaction) => ({ transaction, vout: 0 })), outputs: [output] })
const txidsOf = (...transactions: FakeTransaction[]): string[] => transactions.map(({ txid }) => txid)

async function assembled(txids: string[], store: Parameters<typeof assembleBeef>[1]): Promise<Uint8Array> {
  const beef = await assembleBeef(txids, store)
  if (beef === undefined) throw new Error('the store does not hold it')
  return beef
}

test('a proven transaction stands alone with its proof', async () => {
  const chain = new FakeChain()
  const [parent, other] = [make(chain), make(chain)]
  const child = make(chain, parent, other)
  const { store } = await openStore()
  await store.record([recordOf(parent, 1), recordOf(child, 5)])
  const beef = await assembled([child.txid], store.transactions)
  expect(readBeef(beef).txids).toEqual([child.txid])
  const subject = Transaction.fromBEEF(Array.from(beef))
  expect(subject.id('hex')).toBe(child.txid)
  expect(subject.merklePath?.blockHeight).toBe(5)
  expect(await subject.verify('scripts only')).toBe(true)
})

test('an unproven one comes with its ancestors down to proven ones, parents first', async () => {
  const chain = new FakeChain()
  const beyond = make(chain)
  const [left, right] = [make(chain, beyond), make(chain)]
  const middle = make(chain, left, right)
  const child = make(chain, right, middle, left)
  const { store } = await openStore()
  const transactions = [
    recordOf(child),
    recordOf(middle),
    recordOf(right, 3),
    recordOf(left, 2),
    recordOf(beyond, 1),
  ]
  await store.record(transactions)
  const beef = await assembled([child.txid], store.transactions)
  const { txids } = readBeef(beef)
  expect([...txids].sort()).toEqual(txidsOf(left, right, middle, child).sort())
  expect(txids.slice(2)).toEqual(txidsOf(middle, child))
  expect(Beef.fromBinary(Array.from(beef)).isValid()).toBe(true)
  const subject = Transaction.fromBEEF(Array.from(beef))
  expect(subject.id('hex')).toBe(child.txid)
  expect(subject.inputs.map((input) => input.sourceTransaction?.id('hex'))).toEqual(
    txidsOf(right, middle, left),
  )
})

test('ancestors that the store does not hold are left out, and the subject still stands last', async () => {
  const chain = new FakeChain()
  const [held, missing] = [make(chain), make(chain)]
  const child = make(chain, missing, held)
  const { store } = await openStore()
  await store.record([recordOf(child), recordOf(held, 1)])
  const beef = await assembled([child.txid], store.transactions)
  expect(readBeef(beef).txids).toEqual(txidsOf(held, child))
  const subject = Transaction.fromBEEF(Array.from(beef))
  expect(subject.id('hex')).toBe(child.txid)
  expect(subject.inputs[0]?.sourceTransaction).toBeUndefined()
})

test('there is none where the store does not hold a subject', async () => {
  const chain = new FakeChain()
  const [held, missing] = [make(chain), make(chain)]
  const { store } = await openStore()
  await store.record([recordOf(held, 1)])
  expect(await assembleBeef([missing.txid], store.transactions)).toBeUndefined()
  expect(await assembleBeef([held.txid, missing.txid], store.transactions)).toBeUndefined()
})

test('several subjects share their ancestors', async () => {
  const chain = new FakeChain()
  const parent = chain.spend({ inputs: [], outputs: [output, output] })
  const [one, two] = [0, 1].map((vout) =>
    chain.spend({ inputs: [{ transaction: parent, vout }], outputs: [output] }),
  )
  if (!one || !two) throw new Error('no subjects')
  const { store } = await openStore()
  await store.record([recordOf(parent, 1), recordOf(one), recordOf(two)])
  const beef = await assembled(txidsOf(two, one, two, parent), store.transactions)
  expect(readBeef(beef).txids).toEqual(txidsOf(parent, two, one))
})

test('paths of one block become one path', async () => {
  const chain = new FakeChain()
  const [left, right] = [make(chain), make(chain)]
  const child = make(chain, left, right)
  const block = blockOfTwo(left, right, 7)
  const transactions = [left, right].map(({ txid, raw }) => ({ txid, raw, proof: proofIn(block, { txid }) }))
  const { store } = await openStore()
  await store.record([recordOf(child), ...transactions])
  const beef = await assembled([child.txid], store.transactions)
  const { bumps } = Beef.fromBinary(Array.from(beef))
  expect(bumps).toHaveLength(1)
  for (const { txid } of [left, right]) {
    expect(bumps[0]?.computeRoot(txid)).toBe(block.computeRoot())
    // Read back, it is the proof that was kept.
    expect(readBeef(beef).proof(txid)).toEqual(proofIn(block, { txid }))
  }
  const subject = Transaction.fromBEEF(Array.from(beef))
  expect(subject.inputs.map((input) => input.sourceTransaction?.merklePath?.blockHeight)).toEqual([7, 7])
})

test('a chain of 500 unproven transactions is put together link by link', async () => {
  const chain = new FakeChain()
  const links = [make(chain)]
  for (let tip = links[0]; tip !== undefined && links.length < 500; tip = links.at(-1))
    links.push(make(chain, tip))
  const { store } = await openStore()
  const rules: AdmissionOptions['rules'] = admissionRules({ deployment: undefined })
  store.deriveBy({ rules, pending: { maxTransactions: 1000, maxBytes: 1_000_000 } })
  await store.record(links.toReversed().map((link) => recordOf(link)))
  const beef = await assembled([links.at(-1)?.txid ?? ''], store.transactions)
  expect(readBeef(beef).txids).toEqual(txidsOf(...links))
})
