import {
  BlockedError,
  type BlockedRecord,
  type BlockedSubject,
} from '../../../backend/src/graph/blocklist.js'
import { attribute } from '../../../backend/src/graph/listings.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { ownerOf } from '../../support/graph/owner-of.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type DerivingStore, openStore, record } from '../../support/storage/stores.js'

const KEY = 1
const OWNER = ownerOf(KEY)
const outpointOf = ({ txid }: FakeTransaction, vout = 0): Outpoint => ({ txid, vout })
const hashOf = (body: string): string => sha256(utf8(body)).toString('hex')

const chain = new FakeChain()

/** A mint whose name belongs to the owner. */
const minted = (name: string): FakeTransaction => chain.mint(name, { ownerLock: p2pkh(KEY) })

/** Three names, each with its node; the ordinal of `a` has gone on twice, with content at the last step. */
const [A, B, C] = ['a', 'b', 'c'].map(minted) as [FakeTransaction, FakeTransaction, FakeTransaction]
const MOVED = chain.move(A, 2, p2pkh(KEY))
const SHOWN = chain.spend({
  inputs: [{ transaction: MOVED, vout: 0 }],
  outputs: [
    {
      satoshis: 1,
      lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8('shown'), lock: p2pkh(KEY) }),
    },
  ],
})
const WORLD = [chain.genesis, A, B, C, MOVED, SHOWN]

/** Names of which only every tenth is left, and those that they are minted below. */
const MANY = ['n', 'n0', 'n1', 'n2', 'n3'].map((name) => ({ name, mint: minted(name), isLeft: false }))
for (const tens of '0123')
  for (const ones of '0123456789')
    MANY.push({ name: `n${tens}${ones}`, mint: minted(`n${tens}${ones}`), isLeft: ones === '9' })

const subjectOf = {
  outpoint: (outpoint: Outpoint): BlockedSubject => ({ kind: 'outpoint', value: formatOutpoint(outpoint) }),
  content: (body: string): BlockedSubject => ({ kind: 'content', value: hashOf(body) }),
  name: (name: string): BlockedSubject => ({ kind: 'name', value: name }),
}
const because = (subject: BlockedSubject, reason = 'a test', since = 5): BlockedRecord => ({
  ...subject,
  reason,
  since,
})

async function recordAll(opened: DerivingStore, transactions: FakeTransaction[]): Promise<void> {
  for (const transaction of transactions) await record(opened, { transaction, height: 100 })
}

describe('a store of facts', () => {
  async function openDeriving(): Promise<DerivingStore> {
    const opened = await openStore()
    opened.store.deriveBy({
      rules: admissionRules({ deployment: chain.deployment }),
      pending: { maxTransactions: 100, maxBytes: 1024 * 1024 },
    })
    return opened
  }

  async function openWorld() {
    const opened = await openDeriving()
    await recordAll(opened, WORLD)
    return { ...opened, served: opened.store.served }
  }
  type World = DerivingStore & { served: GraphReads }

  /** The ordinals of the owner, as a reader sees them. */
  async function tipsIn({ served }: World): Promise<string[]> {
    const tips = await served.listings.tipsWith({ attributes: [attribute.owner(OWNER)], limit: 10 })
    return tips.map(formatOutpoint).sort()
  }
  const [TIP_B, TIP_C] = [B, C].map((mint) => mint.outpoint(2))
  test('an ordinal that shows blocked content is in no list, wherever it moved since', async () => {
    const world = await openWorld()
    const inputs = [{ transaction: SHOWN, vout: 0 }]
    const moved = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript: p2pkh(KEY) }] })
    await recordAll(world, [moved])
    expect(await tipsIn(world)).toEqual([TIP_B, TIP_C, moved.outpoint(0)].sort())
    await world.store.blocklist.add(because(subjectOf.content('shown')))
    expect(await tipsIn(world)).toEqual([TIP_B, TIP_C].sort())
  })

  describe('a list', () => {
    async function openMany() {
      const opened = await openDeriving()
      const { store } = opened
      await recordAll(opened, [chain.genesis, A, B, C, ...MANY.map(({ mint }) => mint)])
      for (const [index, { name, mint, isLeft }] of MANY.entries()) {
        const kinds = [subjectOf.name(name), subjectOf.outpoint(outpointOf(mint, 2)), subjectOf.content(name)]
        if (!isLeft) await store.blocklist.add(because(kinds[index % 3] as BlockedSubject))
      }
      return store.served
    }

    const LIMITS = [1, 2, 3, 5]

    test('of names is whole in pages of any length, though whole pages are blocked', async () => {
      const served = await openMany()
      for (const limit of LIMITS) {
        const found: string[] = []
        for (let page = await served.names.byPrefix({ prefix: 'n', limit }); page.length > 0; ) {
          expect(page.length).toBeLessThanOrEqual(limit)
          found.push(...page.map(({ name }) => name))
          page = await served.names.byPrefix({ prefix: 'n', limit, after: found.at(-1) ?? '' })
        }
        expect(found).toEqual(['n09', 'n19', 'n29', 'n39'])
      }
    })

    test('of ordinals is whole in pages of any length', async () => {
      const served = await openMany()
      for (const limit of LIMITS) {
        const query = { attributes: [attribute.owner(OWNER)], limit }
        const found: Outpoint[] = []
        for (let page = await served.listings.tipsWith(query); page.length > 0; ) {
          found.push(...page)
          const after = found.at(-1)
          page = await served.listings.tipsWith({ ...query, ...(after && { after }) })
        }
        const left = [A, B, C, ...MANY.flatMap(({ mint, isLeft }) => (isLeft ? [mint] : []))]
        expect(found.map(({ txid }) => txid).sort()).toEqual(left.map(({ txid }) => txid).sort())
      }
    })
  })

  describe('what is blocked', () => {
    test('is listed in order of kinds and values, a page at a time', async () => {
      const { store } = await openStore()
      const subjects = [
        subjectOf.name('b'),
        subjectOf.outpoint({ txid: 'bb'.repeat(32), vout: 0 }),
        subjectOf.content('a'),
        subjectOf.name('a'),
        subjectOf.outpoint({ txid: 'aa'.repeat(32), vout: 0 }),
      ]
      for (const [since, subject] of subjects.entries())
        await store.blocklist.add(because(subject, `reason ${since}`, since))
      const ordered = [2, 3, 0, 4, 1].map((since) =>
        because(subjects[since] as BlockedSubject, `reason ${since}`, since),
      )
      expect(await store.blocklist.page({ limit: 10 })).toEqual(ordered)
      expect(await store.blocklist.page({ limit: 10, kind: 'name' })).toEqual(ordered.slice(1, 3))
      for (const [index, record] of ordered.entries()) {
        expect(await store.blocklist.page({ limit: 2, after: record })).toEqual(
          ordered.slice(index + 1, index + 3),
        )
        const { kind } = record
        expect(await store.blocklist.page({ limit: 9, kind, after: record })).toEqual(
          ordered.slice(index + 1).filter((each) => each.kind === kind),
        )
      }
    })

    test('has its newest reason, and the time of its first', async () => {
      const { store } = await openStore()
      const subject = subjectOf.name('a')
      expect(await store.blocklist.add(because(subject, 'one', 1))).toEqual(because(subject, 'one', 1))
      expect(await store.blocklist.add(because(subject, 'two', 2))).toEqual(because(subject, 'two', 1))
      expect(await store.blocklist.page({ limit: 5 })).toEqual([because(subject, 'two', 1)])
      expect([await store.blocklist.remove(subject), await store.blocklist.remove(subject)]).toEqual([
        true,
        false,
      ])
    })

    test('keeps the operator’s reason where the engine evicts it, too', async () => {
      const { store } = await openWorld()
      const [first, second] = [outpointOf(A, 2), outpointOf(B, 2)]
      await store.evict(first)
      await store.blocklist.add(because(subjectOf.outpoint(second), 'mine'))
      await store.evict(second)
      const reasons = (await store.blocklist.page({ limit: 5 })).map(({ value, reason }) => [value, reason])
      expect(Object.fromEntries(reasons)).toEqual({
        [formatOutpoint(first)]: 'evicted',
        [formatOutpoint(second)]: 'mine',
      })
    })

    test('that cannot be written is not blocked', async () => {
      const world = await openWorld()
      const mend = await world.breakInserts()
      await expect(world.store.blocklist.add(because(subjectOf.name('a')))).rejects.toThrow(
        'the disk is full',
      )
      expect(world.served.names.originOf('a')).toEqual(outpointOf(A, 2))
      await mend()
    })

    test('by another process counts at once', async () => {
      const { another, served } = await openWorld()
      await another().blocklist.add(because(subjectOf.name('a')))
      expect(() => served.names.originOf('a')).toThrow(BlockedError)
    })
  })

  test('a body that is blocked while it is sent is not sent on', async () => {
    const opened = await openDeriving()
    const { store } = opened
    const body = 'x'.repeat(600_000)
    await recordAll(opened, [chain.inscribe({ contentType: 'text/plain', body: utf8(body) })])
    const chunks = store.served.content.chunks(hashOf(body))
    expect(chunks.next().done).toBe(false)
    await store.blocklist.add(because(subjectOf.content(body)))
    expect(() => chunks.next()).toThrow(BlockedError)
  })
})
