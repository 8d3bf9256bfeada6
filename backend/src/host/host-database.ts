import type { Knex } from 'knex'
import type { Db } from 'mongodb'
import { MongoLog } from '../facts/mongo-log.js'
import { MysqlLog, type MysqlQuery } from '../facts/mysql-log.js'
import type { SharedLog } from '../facts/shared-log.js'
import { sha256 } from '../graph/native-hash.js'
import { toHex, utf8 } from '../protocol/bytes.js'

/**
 * A host's connection to its database, of any version of `knex` or of the `mongodb` driver: the host's copy may differ from the
 * one that this package is compiled with. Stores use no class of either package, only the methods of the connection.
 */
export type HostDatabase = SqlDatabase | MongoDatabase

export interface SqlDatabase {
  readonly client: unknown
  raw(sql: string): PromiseLike<unknown>
}

/** A `Db` of the MongoDB driver. */
export interface MongoDatabase {
  readonly databaseName: string
  collection(name: string): object
}

function isMongo(database: HostDatabase): boolean {
  return 'databaseName' in database
}

/**
 * Opens the log in a host's database, or creates it.
 *
 * @throws GeneralError `MISSING_GRANT` if the database user lacks a right; else what the driver throws.
 */
export async function openHostLog(database: HostDatabase): Promise<SharedLog> {
  if (isMongo(database)) return await MongoLog.open(database as Db)
  return await MysqlLog.open(queryOf(database as SqlDatabase))
}

/** Settings with which a thread connects to a host's database by itself. */
export type Connection = Record<string, unknown>

/** The settings of a host on mysql2; undefined if another thread cannot use the same. */
export function connectionOf(database: HostDatabase): Connection | undefined {
  if (isMongo(database) || !isMysql(database as SqlDatabase)) return undefined
  const { driverName, config, connectionSettings: settings } = (database as SqlDatabase).client as KnexClient
  if (driverName !== 'mysql2' || typeof config?.connection === 'function') return undefined
  // The host prepares each of its connections, for example by taking a role: those of the thread would lack that.
  if (config?.pool?.afterCreate !== undefined) return undefined
  try {
    // Knex hides the password.
    return structuredClone({ ...settings, password: settings?.password })
  } catch {
    // It contains code of the host.
    return undefined
  }
}

interface KnexClient {
  driverName?: string
  config?: { connection?: unknown; pool?: { afterCreate?: unknown } }
  connectionSettings?: Connection
}

/** Identifies a host's database, as 8 hexadecimal digits; no secret goes into it. */
export function nameOf(database: HostDatabase): string {
  const text = isMongo(database) ? mongoName(database as Db) : sqlName(database as SqlDatabase)
  return toHex(sha256(utf8(text))).slice(0, 8)
}

function mongoName({ databaseName, client }: Db): string {
  const hosts = client?.options?.hosts?.map(String) ?? []
  return `${hosts} ${databaseName}`
}

function sqlName({ client }: SqlDatabase): string {
  const { connection } = (client as { config?: { connection?: unknown } } | undefined)?.config ?? {}
  if (typeof connection === 'string') {
    const { host, pathname } = new URL(connection)
    return `${host} ${pathname}`
  }
  const { host, port, socketPath, database, filename } = (connection ?? {}) as Record<string, unknown>
  return [host, port, socketPath, database, filename].map(String).join(' ')
}

// biome-ignore lint/suspicious/noExplicitAny: a row has the columns that its statement names; the author of the statement knows them.
export type SqlRow = Record<string, any>

export type Ask = (sql: string, values: readonly unknown[]) => Promise<SqlRow[]>

/** Whether a host's knex, of any version, is on MySQL or MariaDB. */
export function isMysql({ client }: SqlDatabase): boolean {
  return (client as { dialect?: string } | undefined)?.dialect === 'mysql'
}

/** Runs statements on a host's knex, and returns their rows in one form for all drivers. */
export function askKnex(database: SqlDatabase): Ask {
  const query = queryOf(database)
  return async (sql, values) => ((await query(sql, [...values])) as [SqlRow[]])[0]
}

/** Some drivers of SQLite give bytes as an `ArrayBuffer`. */
function withBuffers(row: SqlRow): SqlRow {
  const columns = Object.entries(row)
  return Object.fromEntries(
    columns.map(([name, value]) => [name, value instanceof ArrayBuffer ? Buffer.from(value) : value]),
  )
}

/** Runs statements for MySQL on a host's knex, with results as those of a MySQL driver. */
export function queryOf(database: SqlDatabase): MysqlQuery {
  const knex = database as Knex
  if (isMysql(database)) return (sql, values) => knex.raw(sql, values as never)
  return async (sql, values) => {
    try {
      const answer = await knex.raw(inSqlite(sql), values as never)
      return [Array.isArray(answer) ? answer.map(withBuffers) : { affectedRows: answer?.changes }]
    } catch (error) {
      const code = CODES.find(([text]) => text.test(String(error)))?.[1]
      throw code === undefined ? error : Object.assign(error as Error, { code })
    }
  }
}

/** Translates a statement for MySQL for a host on SQLite, as in tests. */
function inSqlite(sql: string): string {
  return sql
    .replace('insert ignore', 'insert or ignore')
    .replace(/\)\s+engine = InnoDB/, ')')
    .replace(/,\s+key \w+ \([^)]*\)/, '')
    .replace(/on duplicate key update (\w+) = values\(\w+\)/, 'on conflict do update set $1 = excluded.$1')
    .replace(/ in \(\(\?/, ' in (values (?')
}

const CODES: [RegExp, string][] = [
  [/UNIQUE constraint|SQLITE_CONSTRAINT/, 'ER_DUP_ENTRY'],
  [/no such table/, 'ER_NO_SUCH_TABLE'],
]
