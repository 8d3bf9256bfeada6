import { LostConflictError, type Reason } from '../../../backend/src/graph/errors.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { recordOf } from '../../support/protocol/block.js'
import { FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { rowsOf } from '../../support/storage/arrival.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

// What the network says of unproven transactions, and what that decides.

const PENDING = { maxTransactions: 100, maxBytes: 1024 * 1024 }

/** Records a transaction as one that nobody submitted, so that it is stored though it loses. */
async function know(store: FactStore, transaction: FakeTransaction, height?: number): Promise<void> {
  await store.record([recordOf(transaction, height)])
}

/** Records a transaction as one that was submitted, with those that came along. Returns why it is refused. */
async function submitted(
  store: FactStore,
  [subject, ...along]: FakeTransaction[],
  keepLost?: { client: string },
): Promise<Reason | undefined> {
  if (subject === undefined) throw new Error('nothing is submitted')
  const all = [subject, ...along]
  const records = all.map((each) => recordOf(each))
  try {
    await store.record(records, { subjects: [subject.txid], ...(keepLost && { keepLost }) })
    return undefined
  } catch (error) {
    if (!(error instanceof LostConflictError)) throw error
    return error.reason
  }
}

describe('a store of facts', () => {
  afterEach(closeStores)

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

  test('what the network rejected counts for nothing until it is seen or proven', async () => {
    const { store, squat, honest } = await squatted()
    await know(store, squat)
    await store.sightings.record([{ txid: squat.txid, status: 'rejected' }])
    expect(await claimed(store)).toEqual([])
    expect(await submitted(store, [squat])).toEqual({ txid: squat.txid, tier: 'rejected' })
    expect(await submitted(store, [honest])).toBeUndefined()
    expect(await claimed(store)).toEqual(['h'])
    await store.sightings.record([{ txid: squat.txid, status: 'seen' }])
    expect(await claimed(store)).toEqual(['s'])
    await store.sightings.record([{ txid: squat.txid, status: 'rejected' }])
    expect(await claimed(store)).toEqual(['h'])
    await know(store, squat, 101)
    expect(await claimed(store)).toEqual(['s'])
    expect(await store.transactions.tiers([squat.txid])).toEqual(new Map([[squat.txid, 'proven']]))
  })

  test('a proof beats what was seen, and when it is taken back, what was seen counts again', async () => {
    const { store, squat, honest } = await squatted()
    await know(store, squat)
    await know(store, honest)
    await store.sightings.record([{ txid: squat.txid, status: 'seen' }])
    const { proof } = recordOf(honest, 101)
    await know(store, honest, 101)
    expect(await claimed(store)).toEqual(['h'])
    if (proof === undefined) throw new Error('it has a proof')
    await store.disprove(proof)
    expect(await claimed(store)).toEqual(['s'])
  })

  test('what was said of a transaction that is not stored counts when it comes', async () => {
    const { store, squat, honest, further } = await squatted()
    await store.sightings.record([
      { txid: squat.txid, status: 'rejected' },
      { txid: further.txid, status: 'seen' },
    ])
    await know(store, squat)
    expect(await claimed(store)).toEqual([])
    await know(store, honest)
    expect(await store.transactions.tiers([honest.txid])).toEqual(new Map([[honest.txid, 'unseen']]))
    await know(store, further)
    expect(await claimed(store)).toEqual(['h', 'ho'])
    expect(await store.transactions.tiers([honest.txid])).toEqual(new Map([[honest.txid, 'seen']]))
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
    await submitted(store, [squat], { client: 'aa' })
    await submitted(store, [honest], { client: 'aa' })
    expect(await unproven()).toEqual([squat.txid, honest.txid].sort())
    await store.sightings.record([{ txid: honest.txid, status: 'seen' }])
    expect(await unproven()).toEqual([honest.txid])
    await submitted(store, [further], { client: 'aa' })
    await store.sightings.record([{ txid: further.txid, status: 'rejected' }])
    expect(await unproven()).toEqual([honest.txid, further.txid].sort())
  })

  test('a rebuild of the index leaves each row as it is', async () => {
    const { opened, store, squat, honest, further } = await squatted()
    for (const each of [squat, honest, further]) await know(store, each)
    await store.sightings.record([
      { txid: honest.txid, status: 'seen' },
      { txid: further.txid, status: 'rejected' },
    ])
    const before = await rowsOf(opened)
    expect(before.graph_sightings).toHaveLength(2)
    await opened.rebuild()
    expect(await rowsOf(opened)).toEqual(before)
  })

  describe('a submission that loses', () => {
    /** Submits a transaction with those that it is built on, as a client. Returns why it is refused. */
    async function wait(store: FactStore, transaction: FakeTransaction, ...along: FakeTransaction[]) {
      return await submitted(store, [transaction, ...along], { client: 'aa' })
    }

    test('waits, part of no answer, and wins by a sighting with nothing sent again', async () => {
      const { opened, store, squat, honest, further } = await squatted()
      expect(await wait(store, squat)).toBeUndefined()
      const before = await rowsOf(opened)
      const lost = { txid: squat.txid, tier: 'unseen' }
      expect(await wait(store, honest)).toEqual(lost)
      expect(await wait(store, further, honest)).toEqual(lost)
      expect(await wait(store, further)).toEqual(lost)
      const { graph_nodes, graph_names, graph_outputs, graph_spends, graph_traits } = await rowsOf(opened)
      expect(before).toMatchObject({ graph_nodes, graph_names, graph_outputs, graph_spends, graph_traits })
      expect((await opened.rows()).graph_pending).toHaveLength(2)
      await store.sightings.record([{ txid: further.txid, status: 'seen' }])
      expect(await claimed(store)).toEqual(['h', 'ho'])
      expect((await opened.rows()).graph_pending).toEqual([])
      const after = await rowsOf(opened)
      await opened.rebuild()
      expect(await rowsOf(opened)).toEqual(after)
    })

    test('wins by a proof that comes for it, or for what is built on it', async () => {
      const { opened, store, squat, honest, further } = await squatted()
      await wait(store, squat)
      await wait(store, honest)
      await know(store, further, 101)
      expect(await claimed(store)).toEqual(['h', 'ho'])
      expect((await opened.rows()).graph_pending).toEqual([])
      expect(await wait(store, squat)).toEqual({ txid: honest.txid, tier: 'proven' })
    })

    test('wins when the network rejects the winner, or a block no longer has it', async () => {
      const { store, squat, honest } = await squatted()
      await wait(store, squat)
      await wait(store, honest)
      await store.sightings.record([{ txid: squat.txid, status: 'rejected' }])
      expect(await claimed(store)).toEqual(['h'])
      await know(store, squat, 101)
      expect(await claimed(store)).toEqual(['s'])
      const { proof } = recordOf(squat, 101)
      if (proof !== undefined) await store.disprove(proof)
      expect(await claimed(store)).toEqual(['h'])
    })

    test('wins when it was seen, and the winner is in no block any more', async () => {
      const { store, squat, honest } = await squatted()
      await wait(store, squat)
      await wait(store, honest)
      await know(store, squat, 101)
      await store.sightings.record([{ txid: honest.txid, status: 'seen' }])
      expect(await claimed(store)).toEqual(['s'])
      const { proof } = recordOf(squat, 101)
      if (proof !== undefined) await store.disprove(proof)
      expect(await claimed(store)).toEqual(['h'])
    })

    test('is not stored if the winner is mined', async () => {
      const { opened, store, squat, honest } = await squatted()
      await know(store, squat, 101)
      const before = await rowsOf(opened)
      expect(await wait(store, honest)).toEqual({ txid: squat.txid, tier: 'proven' })
      expect(await rowsOf(opened)).toEqual(before)
    })

    test('is not stored if it is built on two spends of one coin', async () => {
      const { opened, store, chain, squat, honest } = await squatted()
      const outputs = [{ satoshis: 1, lockingScript: p2pkh(1) }]
      const both = [squat, honest].map((transaction) => ({ transaction, vout: 2 }))
      const hopeless = chain.spend({ inputs: both, outputs })
      const before = await rowsOf(opened)
      expect(await wait(store, hopeless, squat, honest)).toMatchObject({ tier: 'unseen' })
      expect(await rowsOf(opened)).toEqual(before)
      // Of which nobody can say which of the two came first.
      await store.sightings.record([{ txid: hopeless.txid, status: 'rejected' }])
      expect(await wait(store, hopeless, squat, honest)).toEqual({ txid: hopeless.txid, tier: 'rejected' })
      expect(await claimed(store)).toEqual([])
    })

    test('that was rejected waits, too', async () => {
      const { store, honest } = await squatted()
      await store.sightings.record([{ txid: honest.txid, status: 'rejected' }])
      expect(await wait(store, honest)).toEqual({ txid: honest.txid, tier: 'rejected' })
      expect(await claimed(store)).toEqual([])
      await store.sightings.record([{ txid: honest.txid, status: 'seen' }])
      expect(await claimed(store)).toEqual(['h'])
    })

    test('waits within a limit, at which the client that has the most loses its oldest, and all of that is gone', async () => {
      const { opened, store, chain, root, squat, honest, further } = await squatted(4)
      await wait(store, squat)
      const flood = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => chain.mint(name, { from: root }))
      await submitted(store, [honest], { client: 'bb' })
      for (const each of flood) await submitted(store, [each], { client: 'cc' })
      const waiting = async (): Promise<number> => (await opened.rows()).graph_pending?.length ?? 0
      expect(await waiting()).toBe(4)
      for (const gone of flood.slice(0, 3)) expect(await store.transactions.has(gone.txid)).toBe(false)
      for (const each of flood.slice(3)) expect(await store.transactions.has(each.txid)).toBe(true)
      // What is built on one that waits counts as the same client's, and goes with it.
      await submitted(store, [further, honest], { client: 'bb' })
      expect(await waiting()).toBe(4)
      await store.sightings.record([{ txid: further.txid, status: 'seen' }])
      expect(await claimed(store)).toEqual(['h', 'ho'])
      expect(await waiting()).toBe(2)
    })

    test('leaves nothing behind when it is deleted', async () => {
      const { opened, store, chain, root, squat } = await squatted(1)
      await wait(store, squat)
      const before = await rowsOf(opened)
      await submitted(store, [chain.mint('y', { from: root })], { client: 'cc' })
      const last = chain.mint('z', { from: root })
      await submitted(store, [last], { client: 'cc' })
      await know(store, last, 300)
      const after = await rowsOf(opened)
      expect(after.graph_transactions).toHaveLength((before.graph_transactions?.length ?? 0) + 1)
      // The bytes and the body of one more mint; facts have the body in the bytes, and these with the transaction.
      if (before.graph_pieces !== undefined)
        expect(after.graph_pieces).toHaveLength(before.graph_pieces.length + 2)
    })
  })
})
