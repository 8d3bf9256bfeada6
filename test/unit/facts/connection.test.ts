import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Sql } from '../../../backend/src/facts/connection.js'

// On Node 22.16 and later this asks `node:sqlite`, before that libsql.

const open = (file = ':memory:'): Sql => {
  const sql = new Sql(file)
  onTestFinished(() => sql.close())
  return sql
}
const openTable = (): Sql => {
  const sql = open()
  sql.exec('create table t (id integer primary key, bytes blob, text text)')
  return sql
}

test('a blob is a Buffer however it is read', () => {
  const sql = openTable()
  sql.run('insert into t values (1, ?, ?)', Uint8Array.of(1, 2), null)
  expect(sql.all('select bytes, text from t')).toEqual([{ bytes: Buffer.of(1, 2), text: null }])
  expect(sql.get('select bytes, text from t')).toMatchObject({ bytes: Buffer.of(1, 2), text: null })
})

test('one row after all rows of the same statement is that of its values', () => {
  const sql = openTable()
  for (const id of [1, 2, 3]) sql.run('insert into t values (?, null, ?)', id, `row ${id}`)
  const statement = 'select text from t where id = ?'
  expect(sql.all(statement, 1)).toEqual([{ text: 'row 1' }])
  expect(sql.get(statement, 2)).toMatchObject({ text: 'row 2' })
  expect(sql.get(statement, 4)).toBeUndefined()
  expect(sql.all(statement, 3)).toEqual([{ text: 'row 3' }])
})

test('what came after a savepoint can be taken back', () => {
  const sql = openTable()
  sql.exec('begin')
  expect(sql.run('insert into t values (1, null, null)')).toBe(1)
  sql.exec('savepoint trial')
  sql.run('insert into t values (2, null, null)')
  sql.exec('rollback to trial; release trial')
  expect(sql.inTransaction).toBe(true)
  sql.exec('commit')
  expect(sql.all('select id from t')).toEqual([{ id: 1 }])
})

test('asks the SQLite of the runtime where it has one', () => {
  const version = openTable().get('select sqlite_version() as version')?.version
  // Node 20 has none.
  expect(version).toEqual(process.versions.sqlite ?? expect.stringMatching(/^3\.\d+\.\d+$/))
})

test('an empty blob is an empty Buffer, and a double is the number that it was', () => {
  const sql = openTable()
  sql.run('insert into t values (?, ?, ?)', 2 ** 53 - 1, new Uint8Array(), 'one')
  expect(sql.all('select * from t')).toEqual([{ id: 2 ** 53 - 1, bytes: Buffer.of(), text: 'one' }])
  expect(sql.get('select 0.5 as half, max(id) as most from t')).toEqual({ half: 0.5, most: 2 ** 53 - 1 })
})

test('an insert gives the id of its row, and none if it inserted nothing', () => {
  const sql = openTable()
  expect(sql.insert('insert into t values (7, null, null)')).toBe(7)
  expect(sql.insert('insert or ignore into t values (7, null, null)')).toBeUndefined()
})

describe('an error has the code of SQLite', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'connection-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))
  const inFile = (name: string): Sql => open(join(folder, name))

  test('for a file that another connection holds', () => {
    const [one, other] = [inFile('busy.db'), inFile('busy.db')]
    one.exec('create table t (id integer); begin exclusive')
    other.exec('pragma busy_timeout = 0')
    expect(() => other.exec('begin immediate')).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY' }))
    expect(() => other.all('select * from t')).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY' }))
  })

  test('for one that is no database, one that is full, and one that cannot be opened', () => {
    writeFileSync(join(folder, 'text.db'), 'text '.repeat(1000))
    const text = inFile('text.db')
    expect(() => text.all('select * from t')).toThrow(expect.objectContaining({ code: 'SQLITE_NOTADB' }))
    const full = inFile('full.db')
    full.exec('create table t (bytes blob); pragma max_page_count = 4')
    const insert = (): number => full.run('insert into t values (?)', new Uint8Array(100_000))
    expect(insert).toThrow(expect.objectContaining({ code: 'SQLITE_FULL' }))
    const nowhere = join(folder, 'no-folder', 'file.db')
    expect(() => new Sql(nowhere)).toThrow(expect.objectContaining({ code: 'SQLITE_CANTOPEN' }))
  })
})

test('a read waits for a connection that keeps others out, as one does that recovers the file after a kill', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'connection-'))
  const file = join(folder, 'recovered.db')
  const holder = new Worker(
    `const { createRequire } = require('node:module')
    const { parentPort, workerData } = require('node:worker_threads')
    const Database = createRequire(workerData.from)('libsql')
    const database = new Database(workerData.file)
    database.exec('create table t (id integer); insert into t values (7); begin exclusive')
    parentPort.postMessage('held')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    database.exec('commit')`,
    { eval: true, workerData: { file, from: import.meta.url } },
  )
  const ended = once(holder, 'exit')
  await once(holder, 'message')
  expect(open(file).all('select id from t')).toEqual([{ id: 7 }])
  await ended
  rmSync(folder, { recursive: true })
})

test('a file that is closed refuses what it is asked', () => {
  const sql = new Sql(':memory:')
  sql.exec('create table t (id integer); begin')
  sql.close()
  expect(() => sql.all('select * from t')).toThrow('the file is closed')
})
