import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { knexWriter, type SqlReader } from '../../../../backend/src/storage/sql/database.js'
import { connectSqlite, openSqlite } from '../../../../src/server/store/open-database.js'

test('the first row is that of its own values, whatever the same statement was asked before', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-'))
  const { writer, reader, close } = await openSqlite(folder)
  const sql = 'select ? as asked'
  const askInTurns = async (database: SqlReader): Promise<void> => {
    for (const asked of ['a', 'b', 'c']) {
      expect(await database.all(sql, [asked])).toEqual([{ asked }])
      expect(await database.first(sql, [`first ${asked}`])).toMatchObject({ asked: `first ${asked}` })
    }
  }
  await askInTurns(reader)
  await writer.transaction((trx) => askInTurns(knexWriter(trx)))
  await close()
  await rm(folder, { recursive: true })
})

test('a write waits for that of another thread, and this thread is free meanwhile', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-'))
  const own = await openSqlite(folder)
  await own.writer.raw('create table written (by text)')
  // As another thread has it: connections of its own.
  const other = await connectSqlite(folder)
  const insert = 'insert into written (by) values (?)'
  const first = await own.writer.transaction()
  await knexWriter(first).run(insert, ['own'])
  const second = other.writer.transaction(async (trx) => {
    const rows = await knexWriter(trx).all('select by from written', [])
    await knexWriter(trx).run(insert, [`other after ${rows.map(({ by }) => by)}`])
  })
  const third = other.writer.raw(insert, ['later'])
  setImmediate(() => first.commit())
  await Promise.all([second, third])
  expect(await own.reader.all('select by from written', [])).toEqual([
    { by: 'own' },
    { by: 'other after own' },
    { by: 'later' },
  ])
  await other.close()
  await own.close()
  await rm(folder, { recursive: true })
})
