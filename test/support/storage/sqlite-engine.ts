import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../../src/server/store/open-database.js'
import { openSqlStore, type SqlEngine } from './sql-store.js'

/** Each store is a file in a folder of its own. */
export const sqlite: SqlEngine = {
  name: 'SQLite',
  missing: [],
  share: 1,
  async start() {},
  async stop() {},
  async open() {
    const folder = await mkdtemp(join(tmpdir(), 'minetree-'))
    const { close, ...connections } = await openSqlite(folder)
    return await openSqlStore(connections, {
      tables:
        "select name from sqlite_master where type = 'table' and name like 'graph!_%' escape '!' order by name",
      trigger: (table) =>
        `create trigger broken before insert on ${table} begin select raise(abort, 'the disk is full'); end`,
      async close() {
        await close()
        await rm(folder, { recursive: true })
      },
    })
  },
}
