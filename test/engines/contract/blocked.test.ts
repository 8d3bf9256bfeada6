import { attribute } from '../../../backend/src/graph/attributes.js'
import {
  BlockedError,
  type BlockedKind,
  type BlockedRecord,
  type BlockedSubject,
} from '../../../backend/src/graph/blocklist.js'
import { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import { ORIGIN, TIP } from '../../../backend/src/graph/graph-store.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { graphRecords, type OutputRecord } from '../../../backend/src/graph/records.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { blocked as migration } from '../../../backend/src/storage/sql/migrations/003-blocked.js'
import type { OpenedStore } from '../../support/storage/engine.js'
import { onEachEngine, onEachSqlEngine } from '../../support/storage/stores.js'

const txid = (number: number): string => number.toString(16).padStart(64, 'a')
const at = (number: number, vout = 0): Outpoint => ({ txid: txid(number), vout })
const OWNER = 'ab'.repeat(20)

/** Content of its own for each number. */
const bodyOf = (number: number) => {
  const bytes = utf8(`body ${number}`)
  return { sha256: sha256(bytes).toString('hex'), bytes }
}
const shown = (outpoint: Outpoint, number: number, previous?: Outpoint): OutputRecord => {
  const { sha256, bytes } = bodyOf(number)
  const content = { sha256, contentType: 'text/plain', length: bytes.length }
  return { outpoint, satoshis: 1, owner: OWNER, content, ...(previous && { previous }) }
}

const subjectOf = {
  outpoint: (outpoint: Outpoint): BlockedSubject => ({ kind: 'outpoint', value: formatOutpoint(outpoint) }),
  content: (number: number): BlockedSubject => ({ kind: 'content', value: bodyOf(number).sha256 }),
  name: (name: string): BlockedSubject => ({ kind: 'name', value: name }),
}
const because = (subject: BlockedSubject, reason = 'a test', since = 5): BlockedRecord => ({
  ...subject,
  reason,
  since,
})

/** Three names at `at(n, 2)`, each with its node; the ordinal of `a` has gone on twice, with content at the last step. */
const WORLD = graphRecords({
  outputs: [
    shown(at(1, 2), 1),
    shown(at(2, 2), 2),
    shown(at(3, 2), 3),
    { outpoint: at(4), satoshis: 1, owner: OWNER, previous: at(1, 2) },
    shown(at(5), 5, at(4)),
  ],
  contents: [1, 2, 3, 5].map(bodyOf),
  names: ['a', 'b', 'c'].map((name, index) => ({ name, outpoint: at(index + 1, 2) })),
  nodes: ['a', 'b', 'c'].map((domain, index) => ({ domain, outpoint: at(index + 1, 1) })),
  spends: [
    { outpoint: at(1, 2), spender: txid(4) },
    { outpoint: at(4), spender: txid(5) },
  ],
})

onEachEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  async function openWorld() {
    const opened = await openStore()
    await opened.store.record(WORLD)
    return { ...opened, served: new BlocklistFilter(opened.store) }
  }
  type World = OpenedStore & { served: BlocklistFilter }

  async function lastOf<Item>(items: AsyncIterable<Item>): Promise<Item | undefined> {
    let last: Item | undefined
    for await (last of items);
    return last
  }

  /** Reads of one thing, by what they ask. */
  const READS: Record<string, (served: BlocklistFilter) => Promise<unknown>> = {
    'output 1': (served) => served.ordinals.output(at(1, 2)),
    'output 5': (served) => served.ordinals.output(at(5)),
    'content of 1': (served) => served.ordinals.firstContentOutput(txid(1)),
    'chunk 1': async (served) => served.content.chunk(bodyOf(1).sha256, 0),
    'chunks 1': (served) => lastOf(served.content.chunks(bodyOf(1).sha256)),
    'name a': (served) => served.names.originOf('a'),
    'node a': (served) => served.names.liveNode('a'),
    'mine a': (served) => served.names.longestNode('a'),
    'mine ab': (served) => served.names.longestNode('ab'),
    'tip of 1': (served) => served.ordinals.currentOutput(at(1, 2)),
    'origin from 5': (served) => served.ordinals.at(at(5), ORIGIN),
    'step 1 from 5': (served) => served.ordinals.at(at(5), 1),
    'tip from 4': (served) => served.ordinals.at(at(4), TIP),
    'MAP of 4': (served) => served.metadata.merged(at(4)),
    'stream from 1': (served) => served.streams.summary({ outpoint: at(1, 2), chunkTypes: ['text/plain'] }),
  }

  /** Which of the reads are refused, and by what. */
  async function refused({ served }: World): Promise<Record<string, BlockedKind>> {
    const kinds: Record<string, BlockedKind> = {}
    for (const [name, read] of Object.entries(READS)) {
      try {
        await read(served)
      } catch (error) {
        if (!(error instanceof BlockedError)) throw error
        kinds[name] = error.kind
      }
    }
    return kinds
  }

  /** Lists, as a reader sees them. */
  async function listed({ served }: World) {
    const names = await served.names.byPrefix({ prefix: '', limit: 10 })
    const origins = await served.names.genuineOrigins([at(1, 2), at(2, 2), at(3, 2)])
    return {
      names: names.map(({ name }) => name).join(''),
      origins: origins
        .map(({ name }) => name)
        .sort()
        .join(''),
      tips: (await served.attributes.tipsWith({ attributes: [attribute.owner(OWNER)], limit: 10 }))
        .map(formatOutpoint)
        .sort(),
    }
  }
  const [TIP_A, TIP_B, TIP_C] = [at(5), at(2, 2), at(3, 2)].map(formatOutpoint)
  const all = { names: 'abc', origins: 'abc', tips: [TIP_B, TIP_C, TIP_A].sort() }

  /** For each thing that is blocked, the reads that are refused, and what lists leave out. */
  const CASES: [string, BlockedSubject, string[], object][] = [
    [
      'the origin of a name',
      subjectOf.outpoint(at(1, 2)),
      ['output 1', 'content of 1', 'name a', 'tip of 1', 'origin from 5', 'step 1 from 5', 'stream from 1'],
      { names: 'bc', origins: 'bc' },
    ],
    [
      'its name',
      subjectOf.name('a'),
      [
        ...['output 1', 'content of 1', 'name a', 'node a', 'mine a'],
        ...['tip of 1', 'origin from 5', 'step 1 from 5', 'stream from 1'],
      ],
      { names: 'bc', origins: 'bc' },
    ],
    [
      'its content',
      subjectOf.content(1),
      [
        ...['output 1', 'content of 1', 'chunk 1', 'chunks 1', 'name a'],
        ...['tip of 1', 'origin from 5', 'step 1 from 5', 'stream from 1'],
      ],
      { names: 'bc', origins: 'bc' },
    ],
    ['a step on its way', subjectOf.outpoint(at(4)), ['step 1 from 5', 'tip from 4', 'MAP of 4'], {}],
    [
      'where it is now',
      subjectOf.outpoint(at(5)),
      ['output 5', 'tip of 1', 'origin from 5', 'step 1 from 5', 'tip from 4'],
      { tips: [TIP_B, TIP_C].sort() },
    ],
    [
      'what it shows now',
      subjectOf.content(5),
      ['output 5', 'tip of 1', 'origin from 5', 'step 1 from 5', 'tip from 4'],
      { tips: [TIP_B, TIP_C].sort() },
    ],
    ['its node', subjectOf.outpoint(at(1, 1)), ['node a', 'mine a', 'mine ab'], {}],
  ]

  describe.each(CASES)('where %s is blocked', (_, subject, reads, left) => {
    test('what leads to it is refused, lists are without it, and nothing else changes', async () => {
      const world = await openWorld()
      expect([await refused(world), await listed(world)]).toEqual([{}, all])
      await world.store.blocklist.add(because(subject))
      const kinds = Object.fromEntries(reads.map((read) => [read, subject.kind]))
      expect([await refused(world), await listed(world)]).toEqual([kinds, { ...all, ...left }])
      await world.store.blocklist.remove(subject)
      expect([await refused(world), await listed(world)]).toEqual([{}, all])
    })

    test('it was so before it came, and is after it was recorded again and the store opened again', async () => {
      const opened = await openStore()
      const { store } = opened
      await store.blocklist.add(because(subject))
      for (let times = 0; times < 2; times++) await store.record(WORLD)
      const kinds = Object.fromEntries(reads.map((read) => [read, subject.kind]))
      // One that never was opened reads what is blocked when it is first asked.
      for (const again of [store, opened.another()]) {
        const world = { ...opened, store: again, served: new BlocklistFilter(again) }
        expect([await refused(world), await listed(world)]).toEqual([kinds, { ...all, ...left }])
      }
    })

    test('the rest of the tables stays as it is', async () => {
      const world = await openWorld()
      const { graph_blocked: _none, ...before } = await world.rows()
      await world.store.blocklist.add(because(subject))
      const { graph_blocked: some, ...after } = await world.rows()
      expect(after).toEqual(before)
      expect(some).toHaveLength(1)
      await world.store.blocklist.remove(subject)
      expect(await world.rows()).toEqual({ ...before, graph_blocked: [] })
    })
  })

  describe('a list', () => {
    const MANY = 40
    const names = Array.from({ length: MANY }, (_, index) => `n${String(index).padStart(2, '0')}`)

    /** Names of which only every tenth is left, at the end of ten. */
    async function openMany() {
      const { store } = await openStore()
      await store.record(
        graphRecords({
          outputs: names.map((_, index) => shown(at(index + 1, 2), index + 1)),
          names: names.map((name, index) => ({ name, outpoint: at(index + 1, 2) })),
        }),
      )
      for (const [index, name] of names.entries()) {
        if (index % 10 === 9) continue
        const kinds = [
          subjectOf.name(name),
          subjectOf.outpoint(at(index + 1, 2)),
          subjectOf.content(index + 1),
        ]
        await store.blocklist.add(because(kinds[index % 3] as BlockedSubject))
      }
      return new BlocklistFilter(store)
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
        for (let page = await served.attributes.tipsWith(query); page.length > 0; ) {
          found.push(...page)
          const after = found.at(-1)
          page = await served.attributes.tipsWith({ ...query, ...(after && { after }) })
        }
        expect(found.map(({ txid }) => txid).sort()).toEqual([10, 20, 30, 40].map(txid).sort())
      }
    })
  })

  describe('what is blocked', () => {
    test('is listed in order of kinds and values, a page at a time', async () => {
      const { store } = await openStore()
      const subjects = [
        subjectOf.name('b'),
        subjectOf.outpoint(at(2)),
        subjectOf.content(1),
        subjectOf.name('a'),
        subjectOf.outpoint(at(1)),
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
      const { store } = await openStore()
      await store.evict(at(1))
      await store.blocklist.add(because(subjectOf.outpoint(at(2)), 'mine'))
      await store.evict(at(2))
      expect((await store.blocklist.page({ limit: 5 })).map(({ reason }) => reason)).toEqual([
        'evicted',
        'mine',
      ])
    })

    test('that cannot be written is not blocked', async () => {
      const world = await openWorld()
      const mend = await world.breakInserts('graph_blocked')
      await expect(world.store.blocklist.add(because(subjectOf.name('a')))).rejects.toThrow(
        'the disk is full',
      )
      expect(await refused(world)).toEqual({})
      await mend()
    })

    test('by another process counts once the list is read again', async () => {
      const { store, another, served } = await openWorld()
      await another().blocklist.add(because(subjectOf.name('a')))
      await store.blocklist.refresh()
      await expect(served.names.originOf('a')).rejects.toBeInstanceOf(BlockedError)
    })

    test('while the list is read again, stays blocked', async () => {
      const { store, served } = await openWorld()
      const reading = store.blocklist.refresh()
      await store.blocklist.add(because(subjectOf.name('a')))
      await reading
      await expect(served.names.originOf('a')).rejects.toBeInstanceOf(BlockedError)
    })
  })

  test('a body that is blocked while it is sent is not sent on', async () => {
    const { store } = await openStore()
    const bytes = new Uint8Array(600_000)
    const hash = sha256(bytes).toString('hex')
    const content = { sha256: hash, contentType: 'text/plain', length: bytes.length }
    await store.record(
      graphRecords({
        outputs: [{ outpoint: at(1), satoshis: 1, content }],
        contents: [{ sha256: hash, bytes }],
      }),
    )
    const chunks = new BlocklistFilter(store).content.chunks(hash)[Symbol.asyncIterator]()
    expect((await chunks.next()).done).toBe(false)
    await store.blocklist.add(because({ kind: 'content', value: hash }))
    await expect(chunks.next()).rejects.toBeInstanceOf(BlockedError)
  })
})

onEachSqlEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('what was evicted under the schema before is blocked by its outpoint, and is on the way back', async () => {
    const { store, database } = await openStore()
    const { writer } = database
    await store.blocklist.add(because(subjectOf.name('a')))
    await store.evict(at(1))
    await migration.down(writer)
    expect(await writer('graph_evictions').count('* as count').first()).toEqual({ count: 1 })
    // Twice: the two lookup services of a host both bring it.
    for (let times = 0; times < 2; times++) await migration.up(writer)
    await store.blocklist.refresh()
    expect(await store.blocklist.page({ limit: 5 })).toEqual([
      { ...subjectOf.outpoint(at(1)), reason: 'evicted', since: expect.any(Number) },
    ])
    expect(await writer.schema.hasTable('graph_evictions')).toBe(false)
  })
})
