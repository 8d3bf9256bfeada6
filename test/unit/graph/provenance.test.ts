import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { provenanceOf } from '../../../backend/src/read/provenance.js'
import { recordOf } from '../../support/protocol/block.js'
import {
  FakeChain,
  type FakeCoin,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

const ONE = { satoshis: 1, lockingScript: p2pkh(1) }
const CONTENT = inscriptionScript({ contentType: 'text/plain', body: utf8('said') })

/** A lineage of some steps whose origin comes out of `funding`; each later step has a coin beside it. */
function life(steps: number) {
  const chain = new FakeChain()
  const large = chain.spend({ inputs: [], outputs: [{ ...ONE, satoshis: 9 }] })
  const funding: FakeCoin[] = [0, 1].map((vout) => ({ transaction: large, vout }))
  const lineage = [
    chain.spend({ inputs: funding.slice(0, 1), outputs: [{ satoshis: 1, lockingScript: CONTENT }] }),
  ]
  while (lineage.length < steps) {
    const transaction = lineage.at(-1) ?? large
    lineage.push(chain.spend({ inputs: [{ transaction, vout: 0 }, chain.madeUpCoin()], outputs: [ONE] }))
  }
  return { large, lineage }
}

/** A store of these transactions; without a height, they are not mined. */
async function storeOf(...transactions: [FakeTransaction, height?: number][]): Promise<FactStore> {
  const { store } = await openStore()
  const records = transactions.map(([each, height]) => recordOf(each, height))
  await store.record(records)
  return store
}

const at = (transaction: FakeTransaction | undefined) => parseOutpoint(transaction?.outpoint(0) ?? '')

test('a lineage of more steps than a page is collected in order, with what it starts from', async () => {
  const { large, lineage } = life(1100)
  const steps = lineage.map((each, step): [FakeTransaction, number] => [each, step + 1])
  const store = await storeOf([large], ...steps)
  const provenance = await provenanceOf(at(lineage[734]), store)
  expect(provenance).toMatchObject({ kind: 'complete', tip: at(lineage.at(-1)) })
  const txids = 'transactions' in provenance ? provenance.transactions.map(({ txid }) => txid) : []
  expect(txids).toEqual([large, ...lineage].map(({ txid }) => txid))
  const all: string[] = []
  for await (const { txid } of store.ordinals.lineage(at(lineage[7]))) all.push(txid)
  expect(all).toEqual(lineage.map(({ txid }) => txid))
})

test('a long chain that is not mined is collected in order', async () => {
  const chain = new FakeChain()
  const links = [chain.spend({ inputs: [], outputs: [{ ...ONE, satoshis: 600 }] })]
  for (
    let transaction = links[0];
    transaction !== undefined && links.length < 300;
    transaction = links.at(-1)
  ) {
    const lockingScript = links.length === 299 ? CONTENT : ONE.lockingScript
    links.push(
      chain.spend({ inputs: [{ transaction, vout: 0 }], outputs: [{ satoshis: 600, lockingScript }] }),
    )
  }
  const store = await storeOf(...links.map((each): [FakeTransaction] => [each]))
  const provenance = await provenanceOf(at(links.at(-1)), store)
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
  const origin = chain.spend({
    inputs: [{ transaction: large, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: CONTENT }],
  })
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
  const mined = [large, purse, origin, proven].map((each): [FakeTransaction, number] => [each, each.height])
  const store = await storeOf(...mined, [tip])
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
  const { large, lineage } = life(5)
  const absent = lacking === 'large' ? large : lineage[lacking]
  const store = await storeOf(...[large, ...lineage].map((each): [FakeTransaction, number] => [each, 1]))
  expect(await store.ordinals.at(at(lineage[0]), 3)).toBeDefined()
  const raw = store.transactions.raw.bind(store.transactions)
  Object.assign(store.transactions, {
    raw: (txid: string) => (txid === absent?.txid ? undefined : raw(txid)),
  })
  expect(await provenanceOf(at(lineage[3]), store)).toEqual({ kind: 'incomplete', txid: absent?.txid })
})

test('a step that was evicted is in it: it shows where the ordinal comes from', async () => {
  const { large, lineage } = life(5)
  const store = await storeOf(...[large, ...lineage].map((each): [FakeTransaction, number] => [each, 1]))
  await store.evict(at(lineage[2]))
  const provenance = await provenanceOf(at(lineage[4]), store)
  const txids = 'transactions' in provenance ? provenance.transactions.map(({ txid }) => txid) : []
  expect(txids).toEqual([large, ...lineage].map(({ txid }) => txid))
})
