import { Sql } from '../../../backend/src/facts/connection.js'

const opened: Sql[] = []
const open = (): Sql => {
  const sql = new Sql(':memory:')
  opened.push(sql)
  sql.exec('create table t (id integer primary key, bytes blob, text text)')
  return sql
}
afterEach(() => {
  for (const sql of opened.splice(0)) sql.close()
})

test('a blob is a Buffer however it is read', () => {
  const sql = open()
  sql.run('insert into t values (1, ?, ?)', Uint8Array.of(1, 2), null)
  expect(sql.all('select bytes, text from t')).toEqual([{ bytes: Buffer.of(1, 2), text: null }])
  expect(sql.get('select bytes, text from t')).toMatchObject({ bytes: Buffer.of(1, 2), text: null })
})

test('one row after all rows of the same statement is that of its values', () => {
  const sql = open()
  for (const id of [1, 2, 3]) sql.run('insert into t values (?, null, ?)', id, `row ${id}`)
  const statement = 'select text from t where id = ?'
  expect(sql.all(statement, 1)).toEqual([{ text: 'row 1' }])
  expect(sql.get(statement, 2)).toMatchObject({ text: 'row 2' })
  expect(sql.get(statement, 4)).toBeUndefined()
  expect(sql.all(statement, 3)).toEqual([{ text: 'row 3' }])
})

test('what came after a savepoint can be taken back', () => {
  const sql = open()
  sql.exec('begin')
  expect(sql.run('insert into t values (1, null, null)')).toBe(1)
  sql.exec('savepoint trial')
  sql.run('insert into t values (2, null, null)')
  sql.exec('rollback to trial; release trial')
  expect(sql.inTransaction).toBe(true)
  sql.exec('commit')
  expect(sql.all('select id from t')).toEqual([{ id: 1 }])
})
