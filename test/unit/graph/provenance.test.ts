import { provenanceOf } from '../../../backend/src/graph/provenance.js'
import { graphRecords, type OutputRecord } from '../../../backend/src/graph/records.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { recordOf } from '../../support/protocol/block.js'
import { FakeChain, type FakeCoin, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

afterEach(closeStores)

const ONE = { satoshis: 1, lockingScript: p2pkh(1) }
const content = { sha256: 'ab'.repeat(32), contentType: 'text/plain', length: 1 }

/** A lineage of some steps whose origin comes out of `funding`; each later step has a coin beside it. */
function life(steps: number) {
  const chain = new FakeChain()
  const large = chain.spend({ inputs: [], outputs: [{ ...ONE, satoshis: 9 }] })
  const funding: FakeCoin[] = [0, 1].map((vout) => ({ transaction: large, vout }))
  const lineage = [chain.spend({ inputs: funding.slice(0, 1), outputs: [ONE] })]
  while (lineage.length < steps) {
    const transaction = lineage.at(-1) ?? large
    lineage.push(chain.spend({ inputs: [{ transaction, vout: 0 }, chain.madeUpCoin()], outputs: [ONE] }))
  }
  const outputs = lineage.map(
    ({ txid }, step): OutputRecord => ({
      outpoint: { txid, vout: 0 },
      satoshis: 1,
      ...(step === 0 && { content }),
      ...(step > 0 && { previous: { txid: lineage[step - 1]?.txid ?? '', vout: 0 } }),
    }),
  )
  return { large, lineage, outputs }
}

const at = (transaction: FakeTransaction | undefined) => parseOutpoint(transaction?.outpoint(0) ?? '')

test('a lineage of thousands of steps is collected in order, with what it starts from', async () => {
  const { large, lineage, outputs } = life(2500)
  const { store } = await openStore()
  const transactions = [recordOf(large), ...lineage.map((each, step) => recordOf(each, step))]
  await store.record(graphRecords({ transactions, outputs }))
  const provenance = await provenanceOf(at(lineage[1234]), store)
  expect(provenance).toMatchObject({ kind: 'complete', tip: at(lineage.at(-1)) })
  const txids = 'transactions' in provenance ? provenance.transactions.map(({ txid }) => txid) : []
  expect(txids).toEqual([large, ...lineage].map(({ txid }) => txid))
  const all: string[] = []
  for await (const { txid } of store.ordinals.lineage(at(lineage[7]))) all.push(txid)
  expect(all).toEqual(lineage.map(({ txid }) => txid))
})

test('a long chain that is not mined is collected without recursion', async () => {
  const chain = new FakeChain()
  const links = [chain.spend({ inputs: [], outputs: [{ ...ONE, satoshis: 600 }] })]
  for (
    let transaction = links[0];
    transaction !== undefined && links.length < 3000;
    transaction = links.at(-1)
  )
    links.push(chain.spend({ inputs: [{ transaction, vout: 0 }], outputs: [{ ...ONE, satoshis: 600 }] }))
  const { store } = await openStore()
  const outpoint = at(links.at(-1))
  const transactions = links.map((each) => recordOf(each))
  await store.record(graphRecords({ transactions, outputs: [{ outpoint, satoshis: 600, content }] }))
  const provenance = await provenanceOf(outpoint, store)
  expect('transactions' in provenance && provenance.transactions.map(({ txid }) => txid)).toEqual(
    links.map(({ txid }) => txid),
  )
})

test('what an unproven step rests on stands before a proven one that spends of it, too', async () => {
  const chain = new FakeChain()
  const purse = chain.spend({
    inputs: [],
    outputs: [ONE, { ...ONE, satoshis: 50 }, { ...ONE, satoshis: 50 }],
  })
  const large = chain.spend({ inputs: [], outputs: [{ ...ONE, satoshis: 9 }] })
  const origin = chain.spend({ inputs: [{ transaction: large, vout: 0 }], outputs: [ONE] })
  const paid = (transaction: FakeTransaction, vout: number): FakeTransaction =>
    chain.spend({
      inputs: [
        { transaction, vout: 0 },
        { transaction: purse, vout },
      ],
      outputs: [ONE],
    })
  const proven = paid(origin, 1)
  const tip = paid(proven, 2)
  const outputs = [origin, proven, tip].map(({ txid }, step, all): OutputRecord => {
    const previous = all[step - 1]
    return {
      outpoint: { txid, vout: 0 },
      satoshis: 1,
      ...(previous === undefined ? { content } : { previous: { txid: previous.txid, vout: 0 } }),
    }
  })
  const { store } = await openStore()
  const mined = [large, purse, origin, proven].map((each) => recordOf(each, each.height))
  await store.record(graphRecords({ transactions: [...mined, recordOf(tip)], outputs }))
  const provenance = await provenanceOf(at(origin), store)
  expect('transactions' in provenance && provenance.transactions.map(({ txid }) => txid)).toEqual(
    [large, origin, purse, proven, tip].map(({ txid }) => txid),
  )
})

test.each([
  ['what it starts from', 'large'],
  ['its first transaction', 0],
  ['a transaction in the middle', 2],
  ['its last transaction', 4],
] as const)('where the store lacks %s, there is no whole one', async (_, lacking) => {
  const { large, lineage, outputs } = life(5)
  const absent = lacking === 'large' ? large : lineage[lacking]
  const { store } = await openStore()
  const transactions = [large, ...lineage].filter((each) => each !== absent).map((each) => recordOf(each, 1))
  await store.record(graphRecords({ transactions, outputs }))
  expect(await store.ordinals.at(at(lineage[0]), 3)).toBeDefined()
  expect(await provenanceOf(at(lineage[3]), store)).toEqual({ kind: 'incomplete', txid: absent?.txid })
})

test('of a name, what it starts from is not missed', async () => {
  const { lineage, outputs } = life(3)
  const { store } = await openStore()
  const transactions = lineage.map((each) => recordOf(each, 1))
  const names = [{ outpoint: at(lineage[0]), name: 'a' }]
  await store.record(graphRecords({ transactions, outputs, names }))
  const provenance = await provenanceOf(at(lineage[0]), store)
  expect('transactions' in provenance && provenance.transactions.map(({ txid }) => txid)).toEqual(
    lineage.map(({ txid }) => txid),
  )
})

test('a step that was evicted is in it: it shows where the ordinal comes from', async () => {
  const { large, lineage, outputs } = life(5)
  const { store } = await openStore()
  const transactions = [large, ...lineage].map((each) => recordOf(each, 1))
  await store.record(graphRecords({ transactions, outputs }))
  await store.evict(at(lineage[2]))
  const provenance = await provenanceOf(at(lineage[4]), store)
  const txids = 'transactions' in provenance ? provenance.transactions.map(({ txid }) => txid) : []
  expect(txids).toEqual([large, ...lineage].map(({ txid }) => txid))
})

test('where the origin is not known, there is none', async () => {
  const { large, lineage, outputs } = life(3)
  const { store } = await openStore()
  const transactions = [large, ...lineage].map((each) => recordOf(each, 1))
  await store.record(graphRecords({ transactions, outputs: outputs.slice(1) }))
  for (const transaction of [large, ...lineage])
    expect(await provenanceOf(at(transaction), store)).toEqual({ kind: 'unknown' })
})
