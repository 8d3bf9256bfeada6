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
    const values = columns.map((column) => row[column] ?? null)
    sql.run(`insert into ${table} (${columns}) values (${columns.map(() => '?')})`, ...values)
  }
  insert('register', { subject: 'setting base', value: '"1000"', n: 1 })
  insert('tx', { id: 1, txid: key, seq: 1, length: 10, ord: 1 << 20 })
  const proven = { seq: 2, length: 10, ord: 2 << 20, own: 7, mined: 7, mint: 1 }
  insert('tx', { id: 2, txid: Buffer.alloc(32, 2), ...proven })
  insert('tx', { id: 3, txid: Buffer.alloc(32, 3) })
  insert('spend', { pid: 1, vout: 0, sid: 2 })
  insert('node', { tid: 1, vout: 1, domain: 'a', active: 1 })
  insert('name', { tid: 1, vout: 2, name: 'a', active: 1, recency: 5, tkey: 6 })
  const content = { sha: Buffer.alloc(32, 7), ctype: 'text/plain', clen: 1 }
  const map = encodeMap([{ command: 'SET', entries: [['a', '1']] }])
  const coin = { sats: 1, carrier: 0, unresolved: 0, active: 1 }
  const first = { ...coin, lin: 1, origin: 0, latest: 1, lastmap: 1, snap: 1 }
  insert('out', {
    ...{ ...first, ...content, oid: 1, tid: 1, vout: 0, step: 0, map, mlen: map.length, recency: 5, tkey: 6 },
    ...{ parent: Buffer.alloc(36), pok: 1, latestparent: 1 },
  })
  insert('out', { ...first, oid: 2, tid: 2, vout: 0, ptid: 1, pvout: 0, step: 1, latestparent: 1, tkey: 6 })
  insert('out', { ...coin, ...content, oid: 3, tid: 1, vout: 3, ptid: 3, pvout: 0, tkey: 6 })
  insert('snap', { oid: 1, bytes: map })
  for (const text of ['a', 'b'])
    insert('found', { attribute: Buffer.from(hash(text), 'hex'), okey: 6, vout: 0, lin: 1 })
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

const place = { recency: 7, outpoint }
const stream = { outpoint, chunkTypes: ['text/plain'] }
const attributes = [attribute.owner('a'), attribute.owner('b')]

/** Questions to a role: from its methods to what each is asked. */
function every<Role extends keyof FactStore>(
  role: Role,
  asked: Asked<FactStore[Role]>,
): [string, () => unknown][] {
  return Object.entries(asked as Record<string, unknown[]>).map(([method, values]) => {
    const ask = (): unknown =>
      (store[role] as Record<string, (...asked: unknown[]) => unknown>)[method]?.(...values)
    return [`${role}.${method} ${JSON.stringify(values).slice(0, 60)}`, ask]
  })
}
type Asked<Role> = {
  [M in keyof Role]?: Role[M] extends (...asked: infer Values) => unknown ? Values : never
}

test('a whole table read is seen as one', () => {
  asked.push({ sql: 'select * from out', values: [] })
  expect(scans()).toEqual(['SCAN out'])
})

test.each<[string, () => unknown]>([
  ...every('transactions', {
    get: [txid],
    raw: [txid],
    has: [txid],
    heightOf: [txid],
    spenderOf: [outpoint],
  }),
  ...every('transactions', { reasonAgainst: [txid], tiers: [[txid, '00'.repeat(32)]] }),
  ...every('sightings', { of: [[txid]] }),
  ...every('blocks', { from: [{ from: 3 }], lastHeight: [] }),
  ...every('blocks', { ofConflicts: [[{ outpoint, spender: '00'.repeat(32) }]] }),
  ...every('names', { originOf: ['a'], claimed: [['a', 'b']], liveNode: ['a'], longestNode: ['abc'] }),
  ...every('names', { liveNode: ['a', { seen: true }], longestNode: ['abc', { seen: true }] }),
  ...every('names', { genuineNodes: [[outpoint]], genuineOrigins: [[outpoint]] }),
  ...every('names', { byPrefix: [{ prefix: 'a', limit: 3 }] }),
  ...every('names', { byPrefix: [{ prefix: 'a', after: 'ab', limit: 3 }] }),
  ...every('ordinals', { output: [outpoint], firstContentOutput: [txid], currentOutput: [outpoint] }),
  ...every('ordinals', { currentOutput: [unnumbered], at: [outpoint, TIP], lineage: [outpoint] }),
  ...every('ordinals', { at: [outpoint, ORIGIN] }),
  ...every('metadata', { own: [outpoint], merged: [{ output: { outpoint }, hasMap: true }] }),
  ...every('listings', { tipsWith: [{ attributes, limit: 3 }], ordinalsWith: [{ attributes, limit: 3 }] }),
  ...every('listings', { tipsWith: [{ attributes, limit: 3, after: outpoint }] }),
  ...every('content', { chunk: ['07'.repeat(32), 0] }),
  ...every('streams', { summary: [stream], chunks: [{ ...stream, outpoint: unnumbered }] }),
  ...every('listings', { counts: [], newestNames: [{ limit: 3 }], newestInscriptions: [{ limit: 3 }] }),
  ...every('listings', { newestNames: [{ limit: 3, after: place }], childNodes: [''] }),
  ...every('listings', { newestInscriptions: [{ limit: 3, after: place }] }),
  ...every('things', { names: [{ limit: 3 }], inscriptions: [{ limit: 3 }], furtherChunks: [outpoint] }),
  ...every('things', { names: [{ limit: 3, after: place }], contents: [[outpoint]] }),
  ...every('things', { inscriptions: [{ limit: 3, after: place }] }),
  ...every('charts', { branches: [{ domain: '', levels: 3, share: 0.01 }], namesByHeight: [], content: [] }),
  ...every('listings', { history: [{ outpoint, order: 'oldest', limit: 3 }] }),
  ...every('listings', { history: [{ outpoint, order: 'newest', limit: 3 }] }),
  ...every('listings', { transaction: [{ txid, limit: 3 }], blockTimes: [[3, 4]] }),
  ...every('listings', { children: [{ parent: outpoint, skipped: 3, limit: 3 }] }),
  ...every('frontier', { tips: [{ limit: 3, after: outpoint }], latest: [{ limit: 3 }] }),
  ...every('frontier', { unproven: [{ limit: 3, after: txid }] }),
  ...every('admissions', { of: [outpoint], among: [[outpoint]], ofTransaction: [txid] }),
  ...every('admissions', { ofTopic: [{ topic: 'tm_ordinals', since: 0, limit: 10 }] }),
  ...every('admissions', { unspentOfTopic: [{ topic: 'tm_ordinals', since: 0 }] }),
  ...every('admissions', { isApplied: ['tm_ordinals', txid] }),
  ...every('blocklist', { page: [{ limit: 3 }] }),
  ...every('blocklist', { page: [{ kind: 'name', limit: 3 }] }),
  ...every('blocklist', { page: [{ after: { kind: 'content', value: 'a' }, limit: 3 }] }),
  ...every('ancestors', { due: [{ now: 5, limit: 3 }], nextDue: [], count: [5], isWaiting: [unnumbered] }),
  ...every('ancestors', { isUnplaced: [txid] }),
  ...every('chain', { range: [], headers: [{ from: 3, count: 4 }], heightOf: [txid] }),
  ...every('headers', { range: [], read: [{ from: 3, count: 4 }] }),
  ...every('settings', { get: ['genesis'] }),
  ...every('held', { held: [txid], heldUntil: [{ height: 3, time: 4 }, 5] }),
  ['isEmpty', () => store.isEmpty()],
])('%s is answered from indexes', async (_, read) => {
  try {
    const answer = await read()
    const { next } = (answer ?? {}) as { next?: unknown }
    if (typeof next === 'function') for await (const _ of answer as AsyncIterable<unknown>);
  } catch (error) {
    // The log of this test lacks the bytes.
    if (!(error as { code?: string }).code?.startsWith('DAMAGED')) throw error
  }
  expect(asked.length).toBeGreaterThan(0)
  expect(scans()).toEqual([])
})
