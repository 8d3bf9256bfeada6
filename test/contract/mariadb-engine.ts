import createKnex, { type Knex } from 'knex'
import { createConnection } from 'mysql2/promise'
import { knexReader } from '../../backend/src/storage/sql/database.js'
import { type Mariadb, MISSING_FOR_MARIADB, startMariadb } from '../services/mariadb.js'
import { openSqlStore, type SqlEngine } from './sql-store.js'

/** A database with the schema in it; one that a store was closed on is emptied for the next, which takes less than a new one. */
interface EmptyDatabase {
  writer: Knex
  /** The settings that a store has before anybody sets one. */
  settings: object[] | undefined
}

let server: Mariadb | undefined
const databases: Knex[] = []
const free: EmptyDatabase[] = []

const TABLES = `select table_name as name from information_schema.tables
  where table_schema = database() and table_name like 'graph!_%' escape '!' order by table_name`

/** Each test file has a server of its own, and each store a database in it. */
export const mariadb: SqlEngine = {
  name: 'MariaDB',
  missing: MISSING_FOR_MARIADB,
  share: 0.05,
  async start() {
    server = await startMariadb()
  },
  async stop() {
    free.length = 0
    for (const writer of databases.splice(0)) await writer.destroy()
    await server?.stop()
  },
  async open() {
    const database = free.pop() ?? (await createDatabase())
    const { writer } = database
    const opened = await openSqlStore(
      { writer, reader: knexReader(writer) },
      {
        tables: TABLES,
        trigger: (table) =>
          `create trigger broken before insert on ${table} for each row
           signal sqlstate '45000' set message_text = 'the disk is full'`,
        close: () => empty(database),
      },
    )
    database.settings ??= await writer('graph_settings').select()
    return opened
  },
}

async function createDatabase(): Promise<EmptyDatabase> {
  if (server === undefined) throw new Error('MariaDB was not started')
  const name = `store_${databases.length}`
  const connection = await createConnection(server.url(''))
  try {
    await connection.query(`create database ${name}`)
  } finally {
    await connection.end()
  }
  const writer = createKnex({ client: 'mysql2', connection: server.url(name), pool: { min: 0, max: 4 } })
  databases.push(writer)
  return { writer, settings: undefined }
}

async function empty(database: EmptyDatabase): Promise<void> {
  const { writer, settings = [] } = database
  await writer.transaction(async (trx) => {
    for (const { name } of await knexReader(trx).all(TABLES, [])) await trx(name).delete()
    if (settings.length > 0) await trx('graph_settings').insert(settings)
  })
  free.push(database)
}
