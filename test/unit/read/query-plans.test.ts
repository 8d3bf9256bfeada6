import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { Sql, type SqlValue } from '../../../backend/src/facts/connection.js'
import { makeLog } from '../../../backend/src/facts/log-file.js'
import { attribute } from '../../../backend/src/graph/listings.js'
import { encodeMap } from '../../../backend/src/graph/map-coder.js'
import { ORIGIN, TIP } from '../../../backend/src/graph/records.js'
import { SCHEMA } from '../../../backend/src/index/schema.js'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import { Reader } from '../../../backend/src/read/reader.js'
import type { Writer } from '../../../backend/src/writer/writer.js'

const folder = mkdtempSync(join(tmpdir(), 'minetree-'))
const files = { index: join(folder, 'index.db'), log: join(folder, 'log.db') }
const asked: { sql: string; values: SqlValue[] }[] = []
let reader: Reader
let store: FactStore
let explaining: Sql

const txid = 'ab'.repeat(32)
const outpoint = { txid, vout: 0 }
/** Without a number: its coin is not known. */
const unnumbered = { txid, vout: 3 }
const key = Buffer.from(txid, 'hex')
const hash = (text: string): string => attribute.owner(text).hash

function fill(sql: Sql): void {
  const insert = (table: string, row: Record<string, SqlValue>): void => {
    const columns = Object.keys(row)
    sql.run(
      `insert into ${table} (${columns}) values (${columns.map(() => '?')})`,
      ...columns.map((column) => row[column] ?? null),
    )
  }
  insert('setting', { name: 'base', value: '1000', n: 1 })
  insert('tx', { id: 1, txid: key, seq: 1, length: 10, ord: 1 << 20 })
  insert('tx', {
    id: 2,
    txid: Buffer.alloc(32, 2),
    seq: 2,
    length: 10,
    ord: 2 << 20,
    own: 7,
    mined: 7,
    mint: 1,
  })
  insert('tx', { id: 3, txid: Buffer.alloc(32, 3) })
  insert('spend', { pid: 1, vout: 0, sid: 2 })
  insert('node', { tid: 1, vout: 1, domain: 'a', active: 1 })
  insert('name', { tid: 1, vout: 2, name: 'a', active: 1, recency: 5, tkey: 6 })
  const content = { sha: Buffer.alloc(32, 7), ctype: 'text/plain', clen: 1 }
  const map = encodeMap([{ command: 'SET', entries: [['a', '1']] }])
  const first = {
    sats: 1,
    carrier: 0,
    unresolved: 0,
    active: 1,
    lin: 1,
    origin: 0,
    latest: 1,
    lastmap: 1,
    snap: 1,
  }
  insert('out', {
    ...{ ...first, ...content, oid: 1, tid: 1, vout: 0, step: 0, map, mlen: map.length, recency: 5, tkey: 6 },
    ...{ parent: Buffer.alloc(36), pok: 1, latestparent: 1 },
  })
  insert('out', { ...first, oid: 2, tid: 2, vout: 0, ptid: 1, pvout: 0, step: 1, latestparent: 1, tkey: 6 })
  insert('out', {
    ...{ sats: 1, carrier: 0, unresolved: 0, active: 1, oid: 3, tid: 1, vout: 3, ptid: 3, pvout: 0, tkey: 6 },
    ...content,
  })
  insert('snap', { oid: 1, bytes: map })
  for (const [id, text] of ['a', 'b'].entries()) {
    insert('attribute', { id: id + 1, hash: Buffer.from(hash(text), 'hex') })
    insert('found', { attribute: id + 1, okey: 6, vout: 0, lin: 1 })
  }
  insert('admission', { tid: 1, vout: 0, topic: 'tm_ordinals', score: 5 })
  insert('missing', { tid: 1, vout: 3, seq: 1 })
}

beforeAll(() => {
  const [log, index] = [new Sql(files.log), new Sql(files.index)]
  makeLog(log)
  index.exec(SCHEMA)
  fill(index)
  log.close()
  index.close()
  reader = new Reader(files)
  store = new FactStore({ reader, writer: {} as Writer })
  explaining = new Sql(files.index)
  explaining.run('attach ? as log', files.log)
  for (const method of ['all', 'get'] as const) {
    const original = Sql.prototype[method] as (sql: string, ...values: SqlValue[]) => never
    vi.spyOn(Sql.prototype, method).mockImplementation(function (this: Sql, sql, ...values) {
      if (this !== explaining) asked.push({ sql, values })
      return original.call(this, sql, ...values)
    })
  }
})
afterAll(() => {
  vi.restoreAllMocks()
  reader.close()
  explaining.close()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  asked.length = 0
})

/** A row at an end of a table, by its key; or the better one of two at a step of a lineage. */
const ONE_ROW = /order by (height( desc)?|tx\.mined is null, .*) limit 1$/

/** What statements read without the help of an index, or sort as a whole. */
function scans(): string[] {
  return asked
    .filter(({ sql }) => !sql.startsWith('pragma') && !ONE_ROW.test(sql))
    .flatMap(({ sql, values }) => explaining.all(`explain query plan ${sql}`, ...values))
    .map(({ detail }) => String(detail))
    .filter((detail) => isScan(detail) || detail === 'USE TEMP B-TREE FOR ORDER BY')
}

function isScan(detail: string): boolean {
  return /^SCAN (?!json_each|CONSTANT|\(subquery)/.test(detail) && !detail.includes('USING')
}

const all = async <Item>(items: Iterable<Item> | AsyncIterable<Item>): Promise<Item[]> => {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

const place = { recency: 7, outpoint }
const stream = { outpoint, chunkTypes: ['text/plain'] }
const attributes = [attribute.owner('a'), attribute.owner('b')]

test('a whole table read is seen as one', () => {
  asked.push({ sql: 'select * from out', values: [] })
  expect(scans()).toEqual(['SCAN out'])
})

test.each<[string, () => unknown]>([
  ['transactions.get', () => store.transactions.get(txid)],
  ['transactions.raw', () => store.transactions.raw(txid)],
  ['transactions.has', () => store.transactions.has(txid)],
  ['transactions.heightOf', () => store.transactions.heightOf(txid)],
  ['transactions.spenderOf', () => store.transactions.spenderOf(outpoint)],
  ['transactions.reasonAgainst', () => store.transactions.reasonAgainst(txid)],
  ['transactions.tiers', () => store.transactions.tiers([txid, '00'.repeat(32)])],
  ['sightings.of', () => store.sightings.of([txid])],
  ['blocks.from', () => store.blocks.from({ from: 3 })],
  ['blocks.lastHeight', () => store.blocks.lastHeight()],
  ['blocks.ofConflicts', () => store.blocks.ofConflicts([{ outpoint, spender: '00'.repeat(32) }])],
  ['names.originOf', () => store.names.originOf('a')],
  ['names.claimed', () => store.names.claimed(['a', 'b'])],
  ['names.liveNode', () => store.names.liveNode('a')],
  ['names.liveNode seen', () => store.names.liveNode('a', { seen: true })],
  ['names.longestNode', () => store.names.longestNode('abc')],
  ['names.longestNode seen', () => store.names.longestNode('abc', { seen: true })],
  ['names.genuineNodes', () => store.names.genuineNodes([outpoint])],
  ['names.genuineOrigins', () => store.names.genuineOrigins([outpoint])],
  ['names.byPrefix', () => store.names.byPrefix({ prefix: 'a', limit: 3 })],
  ['names.byPrefix after', () => store.names.byPrefix({ prefix: 'a', after: 'ab', limit: 3 })],
  ['ordinals.output', () => store.ordinals.output(outpoint)],
  ['ordinals.firstContentOutput', () => store.ordinals.firstContentOutput(txid)],
  ['ordinals.currentOutput', () => store.ordinals.currentOutput(outpoint)],
  ['ordinals.currentOutput without number', () => store.ordinals.currentOutput(unnumbered)],
  ['ordinals.at the tip', () => store.ordinals.at(outpoint, TIP)],
  ['ordinals.at the origin', () => store.ordinals.at(outpoint, ORIGIN)],
  ['ordinals.lineage', () => all(store.ordinals.lineage(outpoint))],
  ['metadata.own', () => store.metadata.own(outpoint)],
  ['metadata.merged', () => store.metadata.merged(outpoint)],
  ['listings.tipsWith', () => store.listings.tipsWith({ attributes, limit: 3 })],
  ['listings.tipsWith after', () => store.listings.tipsWith({ attributes, limit: 3, after: outpoint })],
  ['content.chunk', () => store.content.chunk('07'.repeat(32), 0)],
  ['streams.summary', () => store.streams.summary(stream)],
  ['streams.chunks without number', () => all(store.streams.chunks({ ...stream, outpoint: unnumbered }))],
  ['listings.counts', () => store.listings.counts()],
  ['listings.newestNames', () => store.listings.newestNames({ limit: 3 })],
  ['listings.newestNames after', () => store.listings.newestNames({ limit: 3, after: place })],
  ['listings.newestInscriptions', () => store.listings.newestInscriptions({ limit: 3 })],
  ['listings.newestInscriptions after', () => store.listings.newestInscriptions({ limit: 3, after: place })],
  ['things.names', () => store.things.names({ limit: 3 })],
  ['things.names after', () => store.things.names({ limit: 3, after: place })],
  ['things.inscriptions', () => store.things.inscriptions({ limit: 3 })],
  ['things.inscriptions after', () => store.things.inscriptions({ limit: 3, after: place })],
  ['things.furtherChunks', () => store.things.furtherChunks(outpoint)],
  ['things.contents', () => store.things.contents([outpoint])],
  ['listings.childNodes', () => store.listings.childNodes('')],
  ['charts.branches', () => store.charts.branches({ domain: '', levels: 3, share: 0.01 })],
  ['charts.namesByHeight', () => store.charts.namesByHeight()],
  ['charts.content', () => store.charts.content()],
  ['listings.history', () => store.listings.history({ outpoint, order: 'oldest', limit: 3 })],
  ['listings.history from the tip', () => store.listings.history({ outpoint, order: 'newest', limit: 3 })],
  ['listings.ordinalsWith', () => store.listings.ordinalsWith({ attributes, limit: 3 })],
  ['listings.transaction', () => store.listings.transaction({ txid, limit: 3 })],
  ['listings.children', () => store.listings.children({ parent: outpoint, skipped: 3, limit: 3 })],
  ['listings.blockTimes', () => store.listings.blockTimes([3, 4])],
  ['frontier.tips', () => store.frontier.tips({ limit: 3, after: outpoint })],
  ['frontier.latest', () => store.frontier.latest({ limit: 3 })],
  ['frontier.unproven', () => store.frontier.unproven({ limit: 3, after: txid })],
  ['admissions.of', () => store.admissions.of(outpoint)],
  ['admissions.among', () => store.admissions.among([outpoint])],
  ['admissions.ofTransaction', () => store.admissions.ofTransaction(txid)],
  ['admissions.ofTopic', () => store.admissions.ofTopic({ topic: 'tm_ordinals', since: 0, limit: 10 })],
  ['admissions.unspentOfTopic', () => store.admissions.unspentOfTopic({ topic: 'tm_ordinals', since: 0 })],
  ['admissions.isApplied', () => store.admissions.isApplied('tm_ordinals', txid)],
  ['blocklist.page', () => store.blocklist.page({ limit: 3 })],
  ['blocklist.page of a kind', () => store.blocklist.page({ kind: 'name', limit: 3 })],
  ['blocklist.page after', () => store.blocklist.page({ after: { kind: 'content', value: 'a' }, limit: 3 })],
  ['ancestors.due', () => store.ancestors.due({ now: 5, limit: 3 })],
  ['ancestors.nextDue', () => store.ancestors.nextDue()],
  ['ancestors.count', () => store.ancestors.count(5)],
  ['ancestors.isWaiting', () => store.ancestors.isWaiting(unnumbered)],
  ['ancestors.isUnplaced', () => store.ancestors.isUnplaced(txid)],
  ['chain.range', () => store.chain.range()],
  ['chain.headers', () => store.chain.headers({ from: 3, count: 4 })],
  ['chain.heightOf', () => store.chain.heightOf(txid)],
  ['headers.range', () => store.headers.range()],
  ['headers.read', () => store.headers.read({ from: 3, count: 4 })],
  ['settings.get', () => store.settings.get('genesis')],
  ['interactions.last', () => store.interactions.last('a', 'b')],
  ['held.held', () => store.held.held(txid)],
  ['held.heldUntil', () => store.held.heldUntil({ height: 3, time: 4 }, 5)],
  ['isEmpty', () => store.isEmpty()],
])('%s is answered from indexes', async (_, read) => {
  try {
    await read()
  } catch (error) {
    // The log of this test lacks the bytes.
    if (!(error as { code?: string }).code?.startsWith('DAMAGED')) throw error
  }
  expect(asked.length).toBeGreaterThan(0)
  expect(scans()).toEqual([])
})
