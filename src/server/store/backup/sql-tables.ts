import type { Knex } from 'knex'
import { createConnection } from 'mysql2'
import { bytesOf } from '../../../../backend/src/storage/rows/columns.js'
import { insertNew, knexWriter, type SqlValue } from '../../../../backend/src/storage/sql/database.js'
import {
  MIGRATIONS_TABLE,
  migrate,
  migrateThrough,
  schemaNames,
} from '../../../../backend/src/storage/sql/migrations.js'
import { rowReader } from '../../../../backend/src/storage/sql/rows.js'
import { openMysql } from '../open-mysql.js'
import {
  BackupError,
  type BackupValue,
  isSaved,
  isSavedTable,
  type LoadedTables,
  type SavedTables,
} from './backup-tables.js'

type Row = Record<string, unknown>

/** A connection whose reads all see the same snapshot. */
interface Snapshot {
  all(sql: string, values?: SqlValue[]): Promise<Row[]>
  /** Streams rows, so that no table is in memory. */
  stream(sql: string): AsyncIterable<Row> | Iterable<Row>
  /** A query for the columns of the tables of the graph, in order: `tableName`, `name` and `type`. */
  columns: string
  /** A query for the `size` of the store in bytes. */
  size: string
}

/** Reads a MySQL or MariaDB database in one transaction, which sees a snapshot and blocks no writer. */
export async function saveMysql<Result>(
  url: string,
  work: (tables: SavedTables) => Promise<Result>,
): Promise<Result> {
  const connection = createConnection({ uri: url, connectTimeout: 5000 })
  try {
    const all: Snapshot['all'] = async (sql, values = []) => {
      const [rows] = await connection.promise().query(sql, values)
      return rows as Row[]
    }
    await all('set session transaction isolation level repeatable read')
    await all('start transaction with consistent snapshot, read only')
    return await work(
      await savedTables({
        all,
        stream: (sql) => connection.query(sql).stream({ highWaterMark: 16 }),
        columns: `select table_name as tableName, column_name as name, column_type as type
          from information_schema.columns
          where table_schema = database() and table_name like 'graph!_%' escape '!'
          order by table_name, ordinal_position`,
        size: `select sum(data_length) as size from information_schema.tables
          where table_schema = database()`,
      }),
    )
  } finally {
    connection.destroy()
  }
}

async function savedTables({ all, stream, ...queries }: Snapshot): Promise<SavedTables> {
  const columns = new Map<string, { name: string; isBoolean: boolean }[]>()
  for (const { tableName, name, type } of await all(queries.columns)) {
    const column = { name: String(name), isBoolean: type === 'boolean' || type === 'tinyint(1)' }
    columns.set(String(tableName), [...(columns.get(String(tableName)) ?? []), column])
  }
  if (!columns.has('graph_settings')) throw new BackupError('there is no store in the database')
  const reader = rowReader({ all, first: async (sql, values) => (await all(sql, values))[0] })
  const migrations = await all(`select name from ${MIGRATIONS_TABLE} order by id`)
  return {
    schema: migrations.map(({ name }) => String(name)),
    async setting(name) {
      const rows = await all('select name, value from graph_settings')
      const value = rows.find((row) => row.name === name)?.value
      return value === undefined ? undefined : String(value)
    },
    async size() {
      const [row] = await all(queries.size)
      return Number(row?.size)
    },
    reader,
    async chunksAfter(last, limit) {
      const options = { sort: { owner: 1, position: 1 }, limit } as const
      if (last === undefined) return await reader.all('graph_pieces', {}, options)
      const { owner, position } = last
      const same = await reader.all('graph_pieces', { owner, position: { $gt: position } }, options)
      if (same.length === limit) return same
      const others = await reader.all(
        'graph_pieces',
        { owner: { $gt: owner } },
        { ...options, limit: limit - same.length },
      )
      return [...same, ...others]
    },
    async *rows() {
      for (const [table, shape] of columns) {
        if (!isSavedTable(table)) continue
        const names = shape.map(({ name }) => name).join(', ')
        for await (const values of stream(`select ${names} from ${table}`)) {
          const row = Object.fromEntries(
            shape.map(({ name, isBoolean }) => [name, savedValue(values[name], isBoolean)]),
          )
          if (isSaved(table, row)) yield { table, row }
        }
      }
    },
  }
}

function savedValue(value: unknown, isBoolean: boolean): BackupValue {
  if (value === null || typeof value === 'string') return value
  if (typeof value === 'number') return isBoolean ? value === 1 : value
  if (typeof value === 'bigint') return Number(value)
  return bytesOf(value)
}

/**
 * Loads a backup into an empty database in one transaction. Its tables are created with the schema of the backup first, and
 * migrated to that of this version afterwards, as at any start.
 *
 * @throws BackupError if there is a store in it, or the backup is of a newer version.
 */
export async function loadSql(
  url: string,
  schema: readonly string[],
  work: (tables: LoadedTables) => Promise<void>,
): Promise<void> {
  if (schema.some((name, index) => schemaNames()[index] !== name))
    throw new BackupError('the backup is of a newer minetree or of another program')
  const { writer, close } = openMysql(url)
  try {
    await assertEmpty(writer, schema)
    await migrateThrough(writer, schema.length)
    await writer.transaction(async (trx) => {
      const target = knexWriter(trx)
      await work({
        async load(table, rows) {
          const [first] = rows
          if (!/^graph_[a-z_]+$/.test(table) || first === undefined || !Object.keys(first).every(isColumn))
            throw new BackupError(`the backup has an unknown table: ${JSON.stringify(table)}`)
          await insertNew(target, table, rows)
        },
      })
    })
    await migrate(writer)
  } finally {
    await close()
  }
}

function isColumn(name: string): boolean {
  return /^[a-z0-9_]+$/.test(name)
}

/** Empty, or with the empty tables of a restore that was stopped. */
async function assertEmpty(writer: Knex, schema: readonly string[]): Promise<void> {
  if (!(await writer.schema.hasTable('graph_settings'))) return
  const made = await writer(MIGRATIONS_TABLE).select('name').orderBy('id')
  const isSame = made.length === schema.length && made.every(({ name }, index) => name === schema[index])
  const settings = await writer('graph_settings').whereNot({ name: 'writes' }).first('name')
  const transaction = await writer('graph_transactions').first('txid')
  if (settings !== undefined || transaction !== undefined)
    throw new BackupError('it already holds a store: restore a backup into an empty one')
  if (!isSame)
    throw new BackupError(`its tables were created by another version than the backup: empty the database`)
}
