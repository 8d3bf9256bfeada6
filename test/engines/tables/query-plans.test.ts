import { jest } from '@jest/globals'
import { WHOLE_TRANSACTION } from '../../../backend/src/graph/ancestor-queue.js'
import { attribute } from '../../../backend/src/graph/attributes.js'
import { TIP } from '../../../backend/src/graph/graph-store.js'
import { encodeMap } from '../../../backend/src/graph/map-coder.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { HEADER_BYTES } from '../../../backend/src/protocol/block-header.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { formatPosition } from '../../../backend/src/storage/rebuild/index-maintenance.js'
import { hashColumn, outpointColumns } from '../../../backend/src/storage/rows/columns.js'
import { insertNew, knexWriter, type SqlValue } from '../../../backend/src/storage/sql/database.js'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { SqlIndexMaintenance } from '../../../backend/src/storage/sql/index-maintenance.js'
import { StoredAncestorQueue } from '../../../backend/src/storage/write/ancestor-queue.js'
import { EXPLAINS, type Step } from '../../support/storage/query-plans.js'
import { watchedReader } from '../../support/storage/sql-store.js'
import { onEachSqlEngine } from '../../support/storage/stores.js'

const txid = 'ab'.repeat(32)
const outpoint = { txid, vout: 2 }
const many = Array.from({ length: 300 }, (_, vout) => ({ txid, vout }))

const content = { sha256: txid, contentType: 'text/plain', length: 1 }
const stream = { outpoint, chunkTypes: ['text/plain'] }
const several = [attribute.contentType('text/plain'), attribute.map('a', '1')]
const map = encodeMap([{ command: 'SET', entries: [['a', '1']] }])

/** Where a page of a list of what is newest goes on. */
const place = { recency: 7, outpoint }

/** How far the ordinal has gone: an engine may sort a few rows rather than look for an index. */
const STEPS = 500
const step = (number: number) => ({ txid: number.toString(16).padStart(64, '0'), vout: 0 })
const tip = step(STEPS)

/** An output that moved from one that is not stored. */
const incomplete = { txid: '12'.repeat(32), vout: 0 }
const withoutAncestor = { outpoint: incomplete, satoshis: 1, previous: { txid: '13'.repeat(32), vout: 0 } }

const queueIn = ({ database }: SqlGraphStore): StoredAncestorQueue => new StoredAncestorQueue(database)

/** The rows of an ordinal that was passed on and on. */
const passedOn = Array.from({ length: STEPS }, (_, at) => ({
  ...outpointColumns(step(at + 1)),
  satoshis: 1,
  unsettled: false,
  lineage_txid: hashColumn(txid),
  lineage_vout: outpoint.vout,
  step: at + 1,
}))

async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

onEachSqlEngine(({ name, openStore, closeStores }) => {
  const explain = EXPLAINS[name]
  if (explain === undefined) throw new Error(`nothing explains what ${name} does`)
  afterAll(closeStores)

  /** A store that remembers what it asked, and how its engine would find it. */
  let store: SqlGraphStore
  let plans: () => Promise<Step[]>
  const asked: { sql: string; values: SqlValue[] }[] = []

  beforeAll(async () => {
    const { database, store: own } = await openStore()
    await own.record(
      graphRecords({
        nodes: [{ outpoint, domain: '' }],
        names: [{ outpoint, name: 'a' }],
        outputs: [{ outpoint, satoshis: 1, content, mapLength: map.length }, withoutAncestor],
        maps: [{ outpoint, bytes: map }],
      }),
    )
    await insertNew(knexWriter(database.writer), 'graph_outputs', passedOn)
    await explain.fill(database.writer)
    const reader = watchedReader(database.reader, (sql, values) => asked.push({ sql, values }))
    store = new SqlGraphStore({ writer: database.writer, reader })
    plans = async () => {
      const steps: Step[] = []
      for (const { sql, values } of asked) steps.push(...(await explain.steps(database.reader, sql, values)))
      return steps
    }
  })
  beforeEach(() => {
    asked.length = 0
  })
  afterEach(() => {
    jest.restoreAllMocks()
  })

  test('a whole table read is seen as one', async () => {
    const { database } = await openStore()
    await explain.fill(database.writer)
    for (const sql of [
      'select * from graph_outputs',
      'select count(*) from graph_spends where spender > txid',
    ]) {
      const steps = await explain.steps(database.reader, sql, [])
      expect(steps.map(({ kind }) => kind)).toEqual(['scan'])
    }
  })

  test.each<[string, (store: SqlGraphStore) => Promise<unknown>]>([
    ['transaction', (store) => store.transactions.get(txid)],
    ['nameOrigin', (store) => store.names.originOf('a')],
    ['claimed', (store) => store.names.claimed(['a', 'b', 'c'])],
    ['liveNode', (store) => store.names.liveNode('')],
    ['longestNode', (store) => store.names.longestNode('abc')],
    ['seen liveNode', (store) => store.names.liveNode('', { seen: true })],
    ['seen longestNode', (store) => store.names.longestNode('abc', { seen: true })],
    ['tiers', (store) => store.transactions.tiers([txid])],
    ['sightings', (store) => store.sightings.of([txid])],
    ['genuineNodes', (store) => store.names.genuineNodes(many)],
    ['genuineOrigins', (store) => store.names.genuineOrigins(many)],
    ['namesByPrefix', (store) => store.names.byPrefix({ prefix: 'a', limit: 10 })],
    ['namesByPrefix after', (store) => store.names.byPrefix({ prefix: 'a', after: 'ab', limit: 10 })],
    ['output', (store) => store.ordinals.output(outpoint)],
    ['firstContentOutput', (store) => store.ordinals.firstContentOutput(txid)],
    ['currentOutput', (store) => store.ordinals.currentOutput(outpoint)],
    ['ordinalAt', (store) => store.ordinals.at(outpoint, TIP)],
    ['ownMap', (store) => store.metadata.own(outpoint)],
    ['mergedMap', (store) => store.metadata.merged(outpoint)],
    [
      'tipsWith',
      (store) => store.attributes.tipsWith({ attributes: [attribute.contentType('text/plain')], limit: 10 }),
    ],
    [
      'tipsWith several, after',
      (store) => store.attributes.tipsWith({ attributes: several, limit: 10, after: outpoint }),
    ],
    ['lineage', async (store) => await allOf(store.ordinals.lineage(outpoint))],
    ['stream', (store) => store.streams.summary(stream)],
    ['streamChunks', async (store) => await allOf(store.streams.chunks(stream))],
    ['chunk', async (store) => store.content.chunk(txid, 0)],
    ['contentChunks', async (store) => await allOf(store.content.chunks(txid))],
    ['admissionsOf', (store) => store.admissions.of(outpoint)],
    ['admissionsOfTransaction', (store) => store.admissions.ofTransaction(txid)],
    [
      'unspentOfTopic',
      (store) => store.admissions.unspentOfTopic({ topic: 'tm_names', since: 5, limit: 10 }),
    ],
    ['isApplied', (store) => store.admissions.isApplied('tm_names', txid)],
    ['spenderOf', (store) => store.transactions.spenderOf(outpoint)],
    ['workBehind', (store) => store.backlog.workBehind({ txids: [txid], limit: 10 })],
    ['heightOf', (store) => store.transactions.heightOf(txid)],
    ['reasonAgainst', (store) => store.transactions.reasonAgainst(txid)],
    ['blocks', (store) => store.blocks.from({ from: 5 })],
    ['tips after', (store) => store.frontier.tips({ after: outpoint, limit: 10 })],
    ['latest', (store) => store.frontier.latest({ limit: 10 })],
    ['unproven', (store) => store.frontier.unproven({ limit: 10 })],
    ['unproven after', (store) => store.frontier.unproven({ after: txid, limit: 10 })],
    [
      'conflictingBlocks',
      (store) => store.blocks.ofConflicts(many.map((each) => ({ outpoint: each, spender: txid }))),
    ],
    ['blockedPage', (store) => store.blocklist.page({ limit: 10, after: { kind: 'name', value: 'a' } })],
    ['lastInteraction', (store) => store.interactions.last('https://a.example', 'tm_names')],
    ['setting', (store) => store.settings.get('genesis')],
    ['due ancestors', (store) => queueIn(store).due({ now: STEPS, limit: 10 })],
    ['nextDue', (store) => queueIn(store).nextDue()],
    ['ancestor counts', (store) => queueIn(store).count(10)],
    ['isWaiting', (store) => queueIn(store).isWaiting(incomplete)],
    ['isWaiting of a transaction', (store) => queueIn(store).isWaiting({ txid, vout: WHOLE_TRANSACTION })],
    ['counts', (store) => store.listings.counts()],
    ['newestNames', (store) => store.listings.newestNames({ limit: 10 })],
    ['newestNames after', (store) => store.listings.newestNames({ limit: 10, after: place })],
    ['newestInscriptions', (store) => store.listings.newestInscriptions({ limit: 10 })],
    ['newestInscriptions after', (store) => store.listings.newestInscriptions({ limit: 10, after: place })],
    ['childNodes', (store) => store.listings.childNodes('')],
    ['history', (store) => store.listings.history({ outpoint, order: 'newest', limit: 10 })],
    ['ordinalsWith', (store) => store.listings.ordinalsWith({ attributes: several, limit: 10 })],
    ['transaction', (store) => store.listings.transaction({ txid, after: 1, limit: 10 })],
    ['blockTimes', (store) => store.listings.blockTimes([2345, 7890])],
    ['header range', (store) => store.headers.range()],
    ['a header', (store) => store.headers.read({ from: 2345, count: 1 })],
    ['headers', (store) => store.headers.read({ from: 2345, count: 1000 })],
  ])('%s is answered from an index', async (_, ask) => {
    await ask(store)
    const steps = await plans()
    expect(steps.some(({ kind }) => kind === 'search')).toBe(true)
    expect(steps.filter(({ kind }) => kind === 'scan')).toEqual([])
  })

  test.each<[string, SqlValue[], (store: SqlGraphStore) => Promise<unknown>]>([
    [
      'after a name',
      ['ab', 'a\x7f', 10],
      (store) => store.names.byPrefix({ prefix: 'a', after: 'ab', limit: 10 }),
    ],
    [
      'before the prefix',
      ['b', 'b\x7f', 10],
      (store) => store.names.byPrefix({ prefix: 'b', after: 'a', limit: 10 }),
    ],
  ])('a page of names %s has one lower bound, where it starts', async (_, bounds, ask) => {
    await ask(store)
    expect(asked.map(({ values }) => values)).toEqual([bounds])
    expect(asked[0]?.sql.match(/name >/g)).toHaveLength(1)
  })

  test('a page of the transaction log is sought where it starts, and so is a page of what has an attribute', async () => {
    const position = formatPosition({ arrival: 7, txid: hashColumn(txid) })
    await new SqlIndexMaintenance(store).transactionLog(position).next()
    await store.attributes.tipsWith({ attributes: several, limit: 10, after: outpoint })
    expect(asked.filter(({ sql }) => /order by arrival/.test(sql))).toHaveLength(1)
    expect((await plans()).filter(({ kind }) => kind === 'scan')).toEqual([])
  })

  test('a page of a frontier is read in the order of an index', async () => {
    await store.frontier.tips({ limit: 10 })
    await store.frontier.tips({ after: outpoint, limit: 10 })
    await store.frontier.latest({ limit: 10 })
    await store.frontier.unproven({ after: txid, limit: 10 })
    expect((await plans()).filter(({ sorts }) => sorts)).toEqual([])
  })

  test('ancestors that are due, and headers, are read in the order of an index', async () => {
    await queueIn(store).due({ now: STEPS, limit: 10 })
    await queueIn(store).nextDue()
    await store.headers.range()
    await store.headers.read({ from: 2345, count: 1000 })
    expect((await plans()).filter(({ sorts }) => sorts)).toEqual([])
  })

  test('a page of what is newest, or of a history, is read in the order of an index', async () => {
    for (const limit of [1, 10]) {
      await store.listings.newestNames({ limit, after: place })
      await store.listings.newestInscriptions({ limit })
      await store.listings.newestInscriptions({ limit, after: place })
      await store.listings.history({ outpoint, order: 'oldest', from: 3, limit })
      await store.listings.history({ outpoint, order: 'newest', limit })
    }
    expect((await plans()).filter(({ sorts }) => sorts)).toEqual([])
  })

  test('a step of an ordinal is found without sorting its life', async () => {
    expect(await store.ordinals.at(outpoint, TIP)).toMatchObject({ sequence: STEPS, tip: true })
    expect(await store.ordinals.currentOutput(outpoint)).toEqual(tip)
    expect(await store.metadata.merged(tip)).toEqual(new Map([['a', '1']]))
    expect(await store.attributes.tipsWith({ attributes: several, limit: 10 })).toEqual([tip])
    expect(await allOf(store.ordinals.lineage(outpoint))).toHaveLength(STEPS + 1)
    expect(await store.streams.summary(stream)).toMatchObject({
      length: 1,
      segments: [{ chunks: 1, length: 1 }],
    })
    expect((await plans()).filter(({ sorts }) => sorts)).toEqual([])
  })

  test('a write reads no table from end to end', async () => {
    const { database, store: own } = await openStore()
    await explain.fill(database.writer)
    const asked: { sql: string; values: (SqlValue | boolean)[] }[] = []
    database.writer.on('query', ({ sql, bindings }) => asked.push({ sql, values: bindings }))
    // An ordinal of a name, and a double spend that wins by a proof: the branch is reorganised, and again without the proof.
    for (const proof of [undefined, { merklePath: Uint8Array.of(1), height: 7, root: txid }]) {
      const spender = (proof === undefined ? 'cd' : 'ef').repeat(32)
      const received = { txid: spender, vout: 0 }
      await own.record(
        graphRecords({
          transactions: [{ txid: spender, raw: Uint8Array.of(1), ...(proof && { proof }) }],
          spends: [{ outpoint, spender }],
          outputs: [{ outpoint: received, satoshis: 1, content, mapLength: map.length }],
          maps: [{ outpoint: received, bytes: map }],
          names: [{ outpoint: received, name: 'a' }],
          nodes: [{ outpoint: { txid: spender, vout: 1 }, domain: 'a' }],
        }),
      )
    }
    expect(await own.disprove({ height: 7, root: txid })).toBe(1)
    await own.evict(outpoint)
    await own.blocklist.remove({ kind: 'outpoint', value: formatOutpoint(outpoint) })
    await own.record(graphRecords({ outputs: [withoutAncestor] }))
    for (const entry of await queueIn(own).due({ now: STEPS, limit: 10 }))
      await queueIn(own).postpone(entry, { due: STEPS })
    const header = Buffer.alloc(HEADER_BYTES)
    const end = await own.headers.range()
    const last = end && (await own.headers.read({ from: end.to, count: 1 }))
    expect(await own.headers.replaceFrom({ height: 5000, headers: header, tip: last })).toBe(true)
    expect(await own.headers.addBelow({ to: (end?.from ?? 5000) - 1, headers: header })).toBe(true)
    const read = asked.filter(({ sql }) => /^(select|update|delete)/i.test(sql))
    expect(read.length).toBeGreaterThan(50)
    for (const { sql, values } of read) {
      const numbers = values.map((value) => (typeof value === 'boolean' ? Number(value) : value))
      const steps = await explain.steps(database.reader, sql, numbers)
      expect({ sql, scans: steps.filter(({ kind }) => kind === 'scan') }).toEqual({ sql, scans: [] })
    }
  })
})
