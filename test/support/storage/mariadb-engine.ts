import createKnex, { type Knex } from 'knex'
import { type Connection, createConnection } from 'mysql2/promise'
import { knexReader } from '../../../backend/src/storage/sql/database.js'
import { MISSING_FOR_MARIADB, mariadbUrl } from '../services/mariadb.js'
import { freshDatabaseName, portOfShared } from '../services/shared.js'
import { openSqlStore, type SqlEngine } from './sql-store.js'

/** A database with the schema in it; one that a store was closed on is emptied for the next, which takes less than a new one. */
interface EmptyDatabase {
  writer: Knex
  /** The settings that a store has before anybody sets one. */
  settings: object[] | undefined
}

let port: number
let root: Connection
const databases = new Map<string, Knex>()
const free: EmptyDatabase[] = []

const TABLES = `select table_name as name from information_schema.tables
  where table_schema = database() and table_name like 'graph!_%' escape '!' order by table_name`

/** Each store has a database of its own on the shared server. */
export const mariadb: SqlEngine = {
  name: 'MariaDB',
  missing: MISSING_FOR_MARIADB,
  share: 0.05,
  async start() {
    port = await portOfShared('mariadb')
    root = await createConnection(mariadbUrl(port, ''))
  },
  async stop() {
    free.length = 0
    for (const [name, writer] of databases) {
      await writer.destroy()
      await root.query(`drop database ${name}`)
    }
    databases.clear()
    await root.end()
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
  const name = freshDatabaseName()
  await root.query(`create database ${name}`)
  const connection = mariadbUrl(port, name)
  const writer = createKnex({ client: 'mysql2', connection, pool: { min: 0, max: 4 } })
  databases.set(name, writer)
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
