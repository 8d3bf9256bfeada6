import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

// A store that derives admissions: what it admits by what is known, and what it keeps of what nothing depends on yet.

const PROOF = { merklePath: Uint8Array.of(1), height: 800_000, root: 'ab'.repeat(32) }
const outputs = [{ satoshis: 1, lockingScript: p2pkh(1) }]

async function record(
  store: FactStore,
  { txid, raw }: FakeTransaction,
  { proven = false } = {},
): Promise<string[]> {
  const transactions = [{ txid, raw, ...(proven && { proof: PROOF }) }]
  const { admitted } = await store.record(transactions)
  return admitted.map(textOf).sort()
}

function textOf({ topic, outpoint }: AdmissionRecord): string {
  return `${topic} ${outpoint.txid}_${outpoint.vout}`
}

describe('a store of facts', () => {
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
      const rules = { ...admissionRules({ deployment: chain.deployment }), others }
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
})
