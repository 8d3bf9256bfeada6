import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { ORIGIN } from '../../../backend/src/graph/records.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import type { DerivingStore } from '../../support/storage/engine.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

// A store that derives admissions: what it admits by what is known, and what it keeps of what nothing depends on yet.

const PROOF = { merklePath: Uint8Array.of(1), height: 800_000, root: 'ab'.repeat(32) }
const outputs = [{ satoshis: 1, lockingScript: p2pkh(1) }]

function inscribedOn(chain: FakeChain, coin: FakeTransaction, text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs: [{ satoshis: 1, lockingScript }] })
}

function derivesIn(store: DerivingStore['store'], chain: FakeChain, maxTransactions = 100): void {
  const rules = admissionRules({ deployment: chain.deployment })
  store.deriveBy({ rules, pending: { maxTransactions, maxBytes: 1024 * 1024 } })
}

async function record(
  store: FactStore,
  { txid, raw }: FakeTransaction,
  { proven = false } = {},
): Promise<string[]> {
  const transactions = [{ txid, raw, ...(proven && { proof: PROOF }) }]
  const admitted = await store.record(transactions)
  return admitted.map(textOf).sort()
}

function textOf({ topic, outpoint }: AdmissionRecord): string {
  return `${topic} ${outpoint.txid}_${outpoint.vout}`
}

describe('a store of facts', () => {
  afterEach(closeStores)

  test('a line of mints that comes last first is admitted when the first of them comes', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain)
    const [a, ab, abc] = ['a', 'ab', 'abc'].map((name) => chain.mint(name))
    if (!a || !ab || !abc) throw new Error('there are three')
    expect(await record(store, abc)).toEqual([`tm_ordinals ${abc.outpoint(2)}`])
    expect(await record(store, ab)).toEqual([`tm_ordinals ${ab.outpoint(2)}`])
    await record(store, chain.genesis)
    expect(await store.names.originOf('abc')).toBeUndefined()
    const names = [a, ab, abc].flatMap((mint) => [0, 1, 2].map((vout) => `tm_names ${mint.outpoint(vout)}`))
    expect(await record(store, a)).toEqual([...names, `tm_ordinals ${a.outpoint(2)}`].sort())
    expect(await store.names.originOf('abc')).toEqual({ txid: abc.txid, vout: 2 })
  })

  test('a transfer whose other input is not known is admitted when that comes, and so is what came after it', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain)
    const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
    const ordinal = inscribedOn(chain, purse, 'moved')
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(1) }] })
    const inputs = [
      { transaction: coin, vout: 0 },
      { transaction: ordinal, vout: 0 },
    ]
    const moved = chain.spend({ inputs, outputs: [{ satoshis: 5, lockingScript: p2pkh(2) }, ...outputs] })
    const further = chain.spend({ inputs: [{ transaction: moved, vout: 1 }], outputs })
    for (const each of [purse, ordinal]) await record(store, each)
    expect(await record(store, moved)).toEqual([])
    expect(await record(store, further)).toEqual([])
    expect(await store.ordinals.at({ txid: ordinal.txid, vout: 0 }, 2)).toBeUndefined()
    expect(await record(store, coin)).toEqual(
      [`tm_ordinals ${moved.outpoint(1)}`, `tm_ordinals ${further.outpoint(0)}`].sort(),
    )
    const step = await store.ordinals.at({ txid: ordinal.txid, vout: 0 }, 2)
    expect(step?.output.outpoint).toEqual({ txid: further.txid, vout: 0 })
  })

  test.each(['first', 'last'])(
    'a further topic admits by bytes alone, and its spent outputs are not listed: spent %s',
    async (when) => {
      const { store } = await openStore()
      const chain = new FakeChain()
      const token = chain.spend({
        inputs: [],
        outputs: [...outputs, { satoshis: 1, lockingScript: p2pkh(9) }],
      })
      const spend = chain.spend({ inputs: [{ transaction: token, vout: 1 }], outputs })
      const others = ({ txid }: { txid: string }) =>
        txid === token.txid ? [0, 1].map((vout) => ({ topic: 'tm_tokens', vout })) : []
      const rules = () => ({
        ...admissionRules({ deployment: chain.deployment })(() => {}),
        others,
      })
      store.deriveBy({ rules, pending: { maxTransactions: 100, maxBytes: 1024 * 1024 } })
      const held = [0, 1].map((vout) => `tm_tokens ${token.outpoint(vout)}`)
      if (when === 'first') await record(store, spend)
      expect(await record(store, token)).toEqual(held)
      expect(await record(store, token)).toEqual([])
      if (when === 'last') expect(await record(store, spend)).toEqual([])
      const unspent = await store.admissions.unspentOfTopic({ topic: 'tm_tokens', since: 0 })
      expect(unspent.map(textOf)).toEqual(held.slice(0, 1))
      expect((await store.admissions.ofTransaction(token.txid)).map(textOf).sort()).toEqual(held)
    },
  )

  test('an inscription on a coin without content has its origin once the coin is known back to its start', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain)
    const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
    const coin = chain.spend({ inputs: [{ transaction: purse, vout: 0 }], outputs })
    const handed = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs })
    const inscribed = inscribedOn(chain, handed, 'on a coin')
    const at = parseOutpoint(inscribed.outpoint(0))
    await record(store, inscribed)
    for (const known of [handed, purse]) {
      await record(store, known)
      expect(await store.ordinals.at(at, ORIGIN)).toBeUndefined()
    }
    await record(store, coin)
    expect(await store.ordinals.at(at, ORIGIN)).toMatchObject({ sequence: 0, origin: at, tip: true })
    // The coins are part of no answer.
    for (const each of [coin, handed]) {
      expect(await store.ordinals.output({ txid: each.txid, vout: 0 })).toBeUndefined()
      expect(await store.ordinals.at({ txid: each.txid, vout: 0 }, ORIGIN)).toBeUndefined()
    }
  })

  test('of what nothing admitted depends on, the unproven goes first where there is too much, the oldest of it', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain, 3)
    const idle = Array.from({ length: 5 }, () => chain.spend({ inputs: [], outputs }))
    const [proven, ...unproven] = idle
    if (proven === undefined) throw new Error('there are five')
    await record(store, proven, { proven: true })
    for (const each of unproven) await record(store, each)
    const held = await Promise.all(idle.map(({ txid }) => store.transactions.has(txid)))
    expect(held).toEqual([true, false, false, true, true])
  })

  test('what is admitted, what spends that, and what they are built on stays, however much else comes', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain, 2)
    const funding = chain.spend({ inputs: [], outputs })
    await record(store, funding)
    const ordinal = inscribedOn(chain, funding, 'kept')
    const burn = chain.spend({
      inputs: [{ transaction: ordinal, vout: 0 }],
      outputs: [{ satoshis: 0, lockingScript: p2pkh(1) }],
    })
    for (const each of [ordinal, burn]) await record(store, each)
    for (let count = 0; count < 6; count++) await record(store, chain.spend({ inputs: [], outputs }))
    const held = [funding, ordinal, burn].map(({ txid }) => store.transactions.has(txid))
    expect(await Promise.all(held)).toEqual([true, true, true])
    expect(await store.transactions.spenderOf({ txid: ordinal.txid, vout: 0 })).toBe(burn.txid)
  })
})
