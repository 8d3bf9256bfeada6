import { LostConflictError } from '../../../backend/src/graph/errors.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { recordOf } from '../../support/protocol/block.js'
import { FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

// What the network says of unproven transactions, and what that decides.

const PENDING = { maxTransactions: 100, maxBytes: 1024 * 1024 }

/** Records a transaction as one that nobody submitted, so that it is stored though it loses. */
async function know(store: FactStore, transaction: FakeTransaction, height?: number): Promise<void> {
  await store.record([recordOf(transaction, height)])
}

/** Records a transaction as one that was submitted; it waits where it loses. */
async function submitted(store: FactStore, transaction: FakeTransaction): Promise<void> {
  const options = { subjects: [transaction.txid], keepLost: { client: 'aa' } }
  await store.record([recordOf(transaction)], options).catch((error: unknown) => {
    if (!(error instanceof LostConflictError)) throw error
  })
}

describe('a store of facts', () => {
  /** A tree whose root is squatted by a mint, and an honest mint of the same node with one built on it. */
  async function squatted(maxWaiting = 100) {
    const opened = await openStore()
    const { store } = opened
    const chain = new FakeChain()
    const rules = admissionRules({ deployment: chain.deployment })
    const waiting = { ...PENDING, maxTransactions: maxWaiting }
    store.deriveBy({ rules, pending: PENDING, waiting })
    await know(store, chain.genesis, 100)
    const root = chain.node('')
    const squat = chain.mint('s', { from: root })
    const honest = chain.mint('h')
    const further = chain.mint('ho')
    return { opened, store, chain, squat, honest, further, root }
  }

  async function claimed(store: FactStore): Promise<string[]> {
    return (await store.names.claimed(['s', 'h', 'ho'])).map(({ name }) => name).sort()
  }

  test('a seen mint beats an unseen one that came first, and what is seen of its children counts as seen of it', async () => {
    const { store, squat, honest, further } = await squatted()
    for (const each of [squat, honest, further]) await know(store, each)
    expect(await claimed(store)).toEqual(['s'])
    expect(await store.transactions.reasonAgainst(further.txid)).toEqual({
      txid: squat.txid,
      tier: 'unseen',
    })
    const seen = { txid: further.txid, status: 'seen' } as const
    const recorded = await store.sightings.record([seen])
    expect(recorded.changed).toEqual([seen])
    expect(recorded.restored.toSorted()).toEqual([honest.txid, further.txid].sort())
    expect(recorded.deactivated).toEqual([squat.txid])
    expect(await claimed(store)).toEqual(['h', 'ho'])
    expect(await store.transactions.tiers([squat.txid, honest.txid, further.txid, 'ab'.repeat(32)])).toEqual(
      new Map([
        [squat.txid, 'unseen'],
        [honest.txid, 'seen'],
        [further.txid, 'seen'],
      ]),
    )
    expect(await store.sightings.of([squat.txid, honest.txid, further.txid])).toEqual(
      new Map([[further.txid, 'seen']]),
    )
    expect(await store.sightings.record([seen])).toEqual({ changed: [], restored: [], deactivated: [] })
  })

  test('mining goes on from the nodes of what is proven or seen, as if there were no others', async () => {
    const { store, chain, squat, honest, further } = await squatted()
    const longest = async (name: string, seen = true): Promise<string | undefined> => {
      const node = await store.names.longestNode(name, { seen })
      return node && `${node.domain} ${formatOutpoint(node.outpoint)}`
    }
    const live = async (domain: string): Promise<string | undefined> => {
      const outpoint = await store.names.liveNode(domain, { seen: true })
      return outpoint && formatOutpoint(outpoint)
    }
    expect(await longest('hot')).toBe(` ${chain.genesis.outpoint(0)}`)
    await know(store, squat)
    expect(await longest('sun', false)).toBe(`s ${squat.outpoint(1)}`)
    expect(await longest('sun')).toBe(` ${chain.genesis.outpoint(0)}`)
    expect(await live('')).toBe(chain.genesis.outpoint(0))
    expect(await live('s')).toBeUndefined()
    await know(store, honest)
    await store.sightings.record([{ txid: honest.txid, status: 'seen' }])
    await know(store, further)
    for (const name of ['hot', 'h']) expect(await longest(name)).toBe(`h ${honest.outpoint(1)}`)
    expect(await longest('hot', false)).toBe(`ho ${further.outpoint(1)}`)
    expect(await longest('sun')).toBe(` ${honest.outpoint(0)}`)
    await know(store, further, 101)
    expect(await longest('hot')).toBe(`ho ${further.outpoint(1)}`)
    expect(await live('h')).toBe(further.outpoint(0))
  })

  test('all for which a sighting or a proof matters is listed, what waits and what was rejected, too', async () => {
    const { store, squat, honest, further } = await squatted()
    const unproven = async (): Promise<string[]> => (await store.frontier.unproven({ limit: 10 })).txids
    await submitted(store, squat)
    await submitted(store, honest)
    expect(await unproven()).toEqual([squat.txid, honest.txid].sort())
    await store.sightings.record([{ txid: honest.txid, status: 'seen' }])
    expect(await unproven()).toEqual([honest.txid])
    await submitted(store, further)
    await store.sightings.record([{ txid: further.txid, status: 'rejected' }])
    expect(await unproven()).toEqual([honest.txid, further.txid].sort())
  })
})
