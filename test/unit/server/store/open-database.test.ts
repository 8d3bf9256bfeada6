import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { knexWriter, type SqlReader } from '../../../../backend/src/storage/sql/database.js'
import { openSqlite } from '../../../../src/server/store/open-database.js'

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
