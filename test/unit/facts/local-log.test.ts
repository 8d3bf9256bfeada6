import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../backend/src/facts/local-log.js'
import { bodyFact, FACT, type NewFact } from '../../../backend/src/facts/log.js'
import { makeLog } from '../../../backend/src/facts/log-file.js'
import { latestOf, nextOf, register } from '../../../backend/src/facts/registers.js'
import { CHUNK_BYTES } from '../../../backend/src/graph/records.js'

function open(file = ':memory:'): Sql {
  const sql = new Sql(file)
  onTestFinished(() => sql.close())
  return sql
}

function openLog(base = 1_000): { sql: Sql; log: LocalLog } {
  const sql = open()
  makeLog(sql, { base })
  return { sql, log: new LocalLog(sql) }
}

const bytes = (length: number): Uint8Array =>
  new Uint8Array(length).map((_, at) => (at * 7 + (at >> 8)) & 0xff)
const fact = (length: number): NewFact => bodyFact(bytes(length))

test('a log begins with the base of its scores, and keeps its identity', () => {
  const { sql, log } = openLog()
  expect(latestOf(log, register.setting('base'))).toMatchObject({ n: 1, value: '1000' })
  expect(log.id).toMatch(/^[0-9a-f]{32}$/)
  const { id } = log
  makeLog(sql, { base: 2_000 })
  expect([log.id, log.last]).toEqual([id, 1])
  expect(openLog().log.id).not.toBe(id)
})

test('a fact is inserted once, and found by its key and after a place', () => {
  const { log } = openLog()
  const placed = log.insert(fact(3))
  expect(placed).toMatchObject({ seq: 2, kind: FACT.body })
  expect(log.insert(fact(3))).toBeUndefined()
  expect(log.insert({ ...fact(3), kind: FACT.header })).toMatchObject({ seq: 4 })
  expect(log.get(FACT.body, fact(3).key)).toEqual({
    ...placed,
    key: expect.anything(),
    body: Buffer.from(bytes(3)),
  })
  expect(log.get(FACT.body, fact(4).key)).toBeUndefined()
  expect([log.has(FACT.body, fact(3).key), log.has(FACT.proof, fact(3).key)]).toEqual([true, false])
  expect([log.keyAt(4)?.kind, log.keyAt(5)]).toEqual([FACT.header, undefined])
  // A place that was taken for nothing stays empty.
  expect(log.last).toBe(4)
})

test('pages of facts are bounded by count and by bytes, and hold at least one', () => {
  const { log } = openLog()
  for (const length of [1000, 400_000, 10, 20]) log.insert(fact(length))
  const seqs = (after: number, page: { limit: number; maxBytes: number }): number[] =>
    log.after(after, page).map(({ seq }) => seq)
  expect(seqs(0, { limit: 3, maxBytes: 1e9 })).toEqual([1, 2, 3])
  expect(seqs(1, { limit: 9, maxBytes: 2000 })).toEqual([2])
  expect(seqs(2, { limit: 9, maxBytes: 10 })).toEqual([3])
  expect(seqs(3, { limit: 9, maxBytes: 30 })).toEqual([4, 5])
  expect(seqs(5, { limit: 9, maxBytes: 30 })).toEqual([])
})

test.each([0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5])(
  'a range of a body of %d bytes is read without the rest',
  (length) => {
    const { log } = openLog()
    const stored = fact(length)
    log.insert(stored)
    const { key } = stored
    expect(log.outline(FACT.body, key)?.length).toBe(length)
    expect(Buffer.from(log.get(FACT.body, key)?.body ?? []).equals(Buffer.from(stored.body))).toBe(true)
    const ranges: [from: number, length: number][] = [
      [0, length],
      [0, 10],
      [length - 1, 10],
      [CHUNK_BYTES - 5, 10],
      [CHUNK_BYTES, CHUNK_BYTES],
      [length, 5],
    ]
    for (const [from, count] of ranges.filter(([from]) => from >= 0)) {
      const slice = log.slice(FACT.body, key, { from, length: count })
      expect(Buffer.from(slice ?? []).equals(Buffer.from(stored.body.subarray(from, from + count)))).toBe(
        true,
      )
    }
    expect(log.slice(FACT.body, fact(7).key, { from: 0, length: 1 })).toBeUndefined()
  },
)

test('a long body is read from another file, and a damaged chunk of it is found', () => {
  const folder = mkdtempSync(join(tmpdir(), 'log-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const sql = open(join(folder, 'log.db'))
  makeLog(sql)
  const stored = fact(2 * CHUNK_BYTES)
  new LocalLog(sql).insert(stored)
  const reader = open()
  reader.exec(`attach '${join(folder, 'log.db')}' as log`)
  const log = new LocalLog(reader, 'log')
  expect(log.get(FACT.body, stored.key)?.body.length).toBe(2 * CHUNK_BYTES)
  sql.run('update chunk set bytes = ? where position = 1', Buffer.from('damaged'))
  expect(log.slice(FACT.body, stored.key, { from: 0, length: 10 })?.length).toBe(10)
  expect(() => log.slice(FACT.body, stored.key, { from: CHUNK_BYTES, length: 10 })).toThrow(
    expect.objectContaining({ code: 'DAMAGED' }),
  )
})

test('of a register the highest number counts, whatever other subjects begin with it', () => {
  const { log } = openLog()
  const write = (subject: string, value: string): void => {
    const next = nextOf(log, subject, value)
    if (next !== undefined) log.insert(next)
  }
  expect(latestOf(log, 'block name a')).toBeUndefined()
  for (const value of ['one', 'two', 'two', 'three']) write('block name a', value)
  write('block name ab', 'other')
  write('block name a\u0001', 'another')
  write('block name', 'shorter')
  expect(latestOf(log, 'block name a')).toMatchObject({ n: 3, value: 'three' })
  expect(latestOf(log, 'block name')).toMatchObject({ n: 1, value: 'shorter' })
  expect(nextOf(log, 'block name a', 'three')).toBeUndefined()
  for (let n = 4; n <= 300; n++) write('block name a', String(n))
  expect(latestOf(log, 'block name a')).toMatchObject({ n: 300, value: '300' })
})
