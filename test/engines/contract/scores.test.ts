import fc from 'fast-check'
import { vi } from 'vitest'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { offeredOutputs } from '../../../src/gateway/sync/sync-routes.js'
import { IS_NIGHTLY, rounds } from '../../support/nightly.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type DerivingStore, openStore } from '../../support/storage/stores.js'

// Scores, by which peers page: nothing that is offered may get one that a peer has passed, whatever the clocks say.

const TOPIC = 'tm_ordinals'
const proofAt = (height: number) => ({ merklePath: Uint8Array.of(1), height, root: 'ab'.repeat(32) })

/** How far the clocks of the writers are off, in milliseconds. */
const CLOCKS = [0, -200, 7_200_000, -7_200_000]

let clock = 1_800_000_000_000
beforeEach(() => {
  vi.spyOn(Date, 'now').mockImplementation(() => clock)
})
afterEach(() => vi.restoreAllMocks())

function derivesIn(store: DerivingStore['store'], chain: FakeChain): FactStore {
  const rules = admissionRules({ deployment: chain.deployment })
  store.deriveBy({ rules, pending: { maxTransactions: 1000, maxBytes: 1024 * 1024 } })
  return store
}

async function record(store: FactStore, { txid, raw }: FakeTransaction, height?: number): Promise<void> {
  const transactions = [{ txid, raw, ...(height !== undefined && { proof: proofAt(height) }) }]
  await store.record(transactions)
}

function note(chain: FakeChain, text: string, count = 1): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  const outputs = Array.from({ length: count }, () => ({ satoshis: 1, lockingScript }))
  return chain.spend({ inputs: [], outputs })
}

/** A peer that pages as the engines do: from the highest score that it has seen. */
class Pager {
  readonly seen = new Set<string>()
  since = 0

  constructor(
    private readonly store: FactStore,
    private readonly limit: number,
  ) {}

  /** Returns whether there may be more. */
  async page(): Promise<boolean> {
    const { store, limit, since } = this
    const page = await offeredOutputs({ topic: TOPIC, since, limit }, store)
    expect(page.length).toBeLessThanOrEqual(limit)
    const outpoints = page.map(({ txid, outputIndex: vout }) => formatOutpoint({ txid, vout }))
    expect(new Set(outpoints).size).toBe(page.length)
    for (const outpoint of outpoints) this.seen.add(outpoint)
    this.since = page.at(-1)?.score ?? since
    if (page.length === limit) expect(this.since).toBeGreaterThan(since)
    return page.length === limit
  }

  async toTheEnd(): Promise<void> {
    while (await this.page());
  }
}

async function offered(store: FactStore): Promise<string[]> {
  const all = store.admissions.unspentOfTopic({ topic: TOPIC, since: 0 })
  return store.served.guard.served(all).map(({ outpoint }) => formatOutpoint(outpoint))
}

describe('a store of facts', () => {
  async function opened(): Promise<DerivingStore & { chain: FakeChain }> {
    const found = await openStore()
    const chain = new FakeChain()
    derivesIn(found.store, chain)
    return { ...found, chain }
  }

  test('many outputs of one transaction come in pages, each once', async () => {
    const { store, chain } = await opened()
    const many = IS_NIGHTLY ? 20_000 : 2000
    await record(store, note(chain, 'before'))
    await record(store, note(chain, 'many', many))
    await record(store, note(chain, 'after'))
    const pager = new Pager(store, many / 20)
    await pager.toTheEnd()
    expect(pager.seen.size).toBe(many + 2)
    const scores = await store.admissions.unspentOfTopic({ topic: TOPIC, since: 0 })
    expect(new Set(scores.map(({ score }) => score)).size).toBe(many + 2)
  })

  test('two writers of one database give higher scores each time, however their clocks differ and jump', async () => {
    const found = await opened()
    const { chain } = found
    const stores = [found.store, derivesIn(found.another(), chain)]
    const pager = new Pager(found.store, 4)
    const txids: string[] = []
    for (let i = 0; i < 24; i++) {
      clock = 1_800_000_000_000 + (CLOCKS[i % CLOCKS.length] ?? 0)
      const each = note(chain, `note ${i}`)
      await record(stores[i % 2] ?? found.store, each)
      txids.push(each.outpoint(0))
      await pager.page()
    }
    await pager.toTheEnd()
    expect([...pager.seen].sort()).toEqual(txids.sort())
    const since = pager.since
    clock -= 365 * 86_400_000
    await record(found.store, note(chain, 'the last'))
    expect((await found.store.admissions.unspentOfTopic({ topic: TOPIC, since })).length).toBe(2)
  })

  test('what is offered again later comes after everything that a peer has seen', async () => {
    const found = await opened()
    const { store, chain } = found
    const [plain, moved] = [note(chain, 'plain'), note(chain, 'moved')]
    const move = (to: number) => chain.move(moved, 0, p2pkh(to))
    const [first, second] = [move(1), move(2)]
    for (const each of [plain, moved, first]) await record(store, each)
    const subject = { kind: 'outpoint', value: plain.outpoint(0) } as const
    await store.blocklist.add({ ...subject, reason: '', since: 0 })
    const ends = async () => (await offered(store)).at(-1)
    expect(await ends()).toBe(first.outpoint(0))
    await record(store, second, 7)
    expect(await ends()).toBe(second.outpoint(0))
    await store.blocklist.remove(subject)
    expect(await ends()).toBe(plain.outpoint(0))
    // The block is gone: the first one counts again.
    await store.disprove({ height: 7, root: 'ab'.repeat(32) })
    expect(await ends()).toBe(first.outpoint(0))
    const body = (await store.ordinals.output({ txid: plain.txid, vout: 0 }))?.content?.sha256 ?? ''
    await store.blocklist.add({ kind: 'content', value: body, reason: '', since: 0 })
    await store.blocklist.remove({ kind: 'content', value: body })
    expect(await ends()).toBe(plain.outpoint(0))
    const before = await store.admissions.unspentOfTopic({ topic: TOPIC, since: 0 })
    // Nothing has changed.
    await store.blocklist.remove(subject)
    await record(store, plain)
    expect(await store.admissions.unspentOfTopic({ topic: TOPIC, since: 0 })).toEqual(before)
  })

  test('a peer that pages meanwhile has all that is offered at the end', async () => {
    const step = fc.record({
      act: fc.constantFrom('note', 'notes', 'block', 'unblock', 'spend', 'prove', 'disprove', 'page'),
      pick: fc.nat(),
      jump: fc.integer({ min: -7_200_000, max: 7_200_000 }),
    })
    const found = await opened()
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40 }), async (steps) => {
        const { chain } = found
        const stores = [found.store, derivesIn(found.another(), chain)] as const
        const pager = new Pager(found.store, 5)
        const coins: FakeTransaction[] = []
        const spenders: FakeTransaction[] = []
        const blocked: string[] = []
        let height = 800_000
        for (const { act, pick, jump } of steps) {
          clock += jump
          const store = stores[pick % 2] ?? found.store
          const one = <Item>(items: Item[]): Item | undefined => items[pick % items.length]
          const coin = one(coins)
          const spender = one(spenders)
          if (act === 'note' || act === 'notes') {
            const made = note(chain, `text ${pick % 3}`, act === 'note' ? 1 : 7)
            coins.push(made)
            await record(store, made)
          } else if (act === 'block' && coin !== undefined) {
            blocked.push(coin.outpoint(0))
            const value = coin.outpoint(0)
            await found.store.blocklist.add({ kind: 'outpoint', value, reason: '', since: 0 })
          } else if (act === 'unblock' && one(blocked) !== undefined) {
            const [value = ''] = blocked.splice(pick % blocked.length, 1)
            await found.store.blocklist.remove({ kind: 'outpoint', value })
          } else if (act === 'spend' && coin !== undefined) {
            const lockingScript = p2pkh(pick % 5)
            const spent = {
              inputs: [{ transaction: coin, vout: 0 }],
              outputs: [{ satoshis: 1, lockingScript }],
            }
            const made = chain.spend(spent)
            spenders.push(made)
            await record(store, made)
          } else if (act === 'prove' && spender !== undefined) await record(store, spender, ++height)
          else if (act === 'disprove') await store.disprove({ height: height--, root: 'ab'.repeat(32) })
          await pager.page()
        }
        await pager.toTheEnd()
        const missed = (await offered(found.store)).filter((outpoint) => !pager.seen.has(outpoint))
        expect(missed).toEqual([])
      }),
      { numRuns: rounds(10, 50) },
    )
  })
})
