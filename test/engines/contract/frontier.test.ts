import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type DerivingStore, openStore } from '../../support/storage/stores.js'

// Where the stored graph may continue on the chain: unspent ordinals, the coins of the latest transactions, what is unproven.

const PROOF = { merklePath: Uint8Array.of(1), height: 800_000, root: 'ab'.repeat(32) }
const MOVED = [{ satoshis: 1, lockingScript: p2pkh(1) }]

function derivesIn(store: DerivingStore['store'], chain: FakeChain): void {
  const rules = admissionRules({ deployment: chain.deployment })
  store.deriveBy({ rules, pending: { maxTransactions: 100, maxBytes: 1024 * 1024 } })
}

async function record(
  store: FactStore,
  { txid, raw }: FakeTransaction,
  { proven = true } = {},
): Promise<void> {
  const transactions = [{ txid, raw, ...(proven && { proof: PROOF }) }]
  await store.record(transactions)
}

/** A transaction with inscriptions in its outputs, and a coin that is none at the end. */
function inscribed(chain: FakeChain, count: number): FakeTransaction {
  const outputs = Array.from({ length: count }, (_, at) => ({
    satoshis: 1,
    lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8(`${at}`) }),
  }))
  return chain.spend({ inputs: [], outputs: [...outputs, { satoshis: 5, lockingScript: p2pkh(2) }] })
}

async function allTips(store: FactStore, limit: number): Promise<{ tips: string[]; pages: number }> {
  const tips: string[] = []
  let after: Outpoint | undefined
  for (let pages = 1; ; pages++) {
    const page = await store.frontier.tips({ ...(after && { after }), limit })
    tips.push(...page.tips.map(formatOutpoint))
    if (page.next === undefined) return { tips, pages }
    after = page.next
  }
}

async function allUnproven(store: FactStore, limit: number): Promise<string[]> {
  const txids: string[] = []
  let after: string | undefined
  for (;;) {
    const page = await store.frontier.unproven({ ...(after !== undefined && { after }), limit })
    txids.push(...page.txids)
    if (page.next === undefined) return txids
    after = page.next
  }
}

describe('a store of facts', () => {
  test.each([1, 3, 100])('the unspent ordinals are listed in pages of %s, each once', async (limit) => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain)
    const first = inscribed(chain, 4)
    const second = inscribed(chain, 2)
    const move = chain.spend({ inputs: [{ transaction: first, vout: 1 }], outputs: MOVED })
    const burn = chain.spend({
      inputs: [{ transaction: second, vout: 0 }],
      outputs: [{ satoshis: 0, lockingScript: p2pkh(1) }],
    })
    for (const each of [first, second, move, burn]) await record(store, each)
    const expected = [first.outpoint(0), first.outpoint(2), first.outpoint(3), second.outpoint(1)]
    const { tips, pages } = await allTips(store, limit)
    expect(tips).toEqual([...expected, move.outpoint(0)].sort())
    // Of 7 outputs; a page that is just full is followed by an empty one.
    expect(pages).toBe(Math.floor(7 / limit) + 1)
  })

  test('the coins of the latest transactions come latest first, without what is spent', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain)
    const [a, ab] = ['a', 'ab'].map((name) => chain.mint(name))
    if (!a || !ab) throw new Error('there are two')
    const move = chain.spend({ inputs: [{ transaction: a, vout: 2 }], outputs: MOVED })
    for (const each of [chain.genesis, a, ab, move]) await record(store, each)
    const latest = await store.frontier.latest({ limit: 10 })
    const shown = latest.map(({ kind, outpoint }) => `${kind} ${formatOutpoint(outpoint)}`)
    expect(shown[0]).toBe(`ordinal ${move.outpoint(0)}`)
    expect(shown.slice(1, 4).sort()).toEqual(
      [`node ${ab.outpoint(0)}`, `node ${ab.outpoint(1)}`, `ordinal ${ab.outpoint(2)}`].sort(),
    )
    expect(shown.slice(4)).toEqual([`node ${a.outpoint(0)}`])
    expect(await store.frontier.latest({ limit: 1 })).toEqual(latest.slice(0, 1))
  })

  test('a node that something else than a mint spends is still among them', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    derivesIn(store, chain)
    const mint = chain.mint('a')
    const dead = chain.spend({ inputs: [{ transaction: mint, vout: 1 }], outputs: MOVED })
    for (const each of [chain.genesis, mint, dead]) await record(store, each)
    const coins = await store.frontier.latest({ limit: 10 })
    expect(coins).toContainEqual({ kind: 'node', outpoint: { txid: mint.txid, vout: 1 } })
  })

  test.each([1, 2, 100])(
    'of what is unproven, that of which topics hold something is listed in pages of %s, by txid',
    async (limit) => {
      const { store } = await openStore()
      const chain = new FakeChain()
      derivesIn(store, chain)
      const held = Array.from({ length: 3 }, () => inscribed(chain, 1))
      const idle = chain.spend({ inputs: [], outputs: MOVED })
      const [spent] = held
      if (spent === undefined) throw new Error('there are three')
      const coin = { transaction: spent, vout: 0 }
      const seen = chain.spend({ inputs: [coin], outputs: MOVED })
      const rival = chain.spend({ inputs: [coin], outputs: [...MOVED, ...MOVED] })
      for (const each of [...held, idle, seen]) await record(store, each, { proven: false })
      await record(store, inscribed(chain, 2))
      expect(await allUnproven(store, limit)).toEqual([...held, seen].map(({ txid }) => txid).sort())
      // The one that was seen first loses, and is not asked about any more; the source of the rival got its proof.
      await record(store, rival)
      await record(store, spent)
      const others = held.slice(1)
      expect(await allUnproven(store, limit)).toEqual(others.map(({ txid }) => txid).sort())
    },
  )
})
