import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
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
