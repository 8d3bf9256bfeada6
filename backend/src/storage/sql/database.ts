import type { Knex } from 'knex'
import { StoreUnavailableError } from '../../graph/errors.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { parts, ROWS_A_STATEMENT } from '../rows/columns.js'

export type SqlValue = string | number | Uint8Array | null

/** A row with the columns that the SQL names. */
// biome-ignore lint/suspicious/noExplicitAny: see above; every use converts columns to records immediately.
type SqlRow = any

/**
 * Runs reads: plain SQL that SQLite, MySQL and MariaDB all accept. A host that can keep prepared statements passes its own
 * implementation.
 */
export interface SqlReader {
  all(sql: string, values: SqlValue[]): Promise<SqlRow[]>
  /** The first row; undefined if there is none. */
  first(sql: string, values: SqlValue[]): Promise<SqlRow | undefined>
}

/** Runs the statements of a write, and reads what it has written so far. */
export interface SqlWriter extends SqlReader {
  /** For the few statements that differ. */
  readonly isMysql: boolean
  run(sql: string, values: SqlValue[]): Promise<void>
}

/** Reads on the connections of knex; in a transaction, including what it has written so far. */
export function knexReader(knex: Knex): SqlReader {
  // In a transaction, knex checks that it is not over.
  if (isMysql(knex) && knex.isTransaction !== true) return mysqlReaderOf(knex)
  return knexWriter(knex)
}

/** Writes on the connections of knex, or within a transaction. */
export function knexWriter(knex: Knex): SqlWriter {
  const all = async (sql: string, values: SqlValue[]): Promise<SqlRow[]> => {
    // MySQL returns rows and fields; SQLite returns rows.
    const answer = await knex.raw(sql, values as Knex.RawBinding[])
    return Array.isArray(answer[0]) ? answer[0] : answer
  }
  return {
    isMysql: isMysql(knex),
    all,
    first: async (sql, values) => (await all(sql, values))[0],
    async run(sql, values) {
      await knex.raw(sql, values as Knex.RawBinding[])
    },
  }
}

/** The placeholders between the brackets of an `in`. */
export function anyOf(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ')
}

/** Whether a database is MySQL or MariaDB. A host that only inspects the factories may pass an object without a client. */
export function isMysql(knex: Knex): boolean {
  return (knex.client as { dialect?: unknown } | undefined)?.dialect === 'mysql'
}

type Callback = (error: unknown, rows: unknown) => void
type Query = (sql: string, values: SqlValue[], callback: Callback) => void

/** The part of mysql2 that is used here, common to its connections and pools. */
interface MysqlConnection {
  query: Query
  /** Prepares a statement once per connection; `mysql`, the predecessor of mysql2, cannot. */
  execute?: Query
}

/** More values are a list of any length: each length would be another statement to prepare, and servers keep a limited number. */
const VALUES_OF_PREPARED = 6

/**
 * Reads on MySQL and MariaDB with prepared statements, without knex and without the promises of the driver: both take longer
 * than a short read.
 *
 * @param connected Runs work on a connection.
 * @throws StoreUnavailableError if the database cannot be reached.
 */
export function mysqlReader(
  connected: <Result>(work: (connection: MysqlConnection) => Promise<Result>) => Promise<Result>,
): SqlReader {
  const all: SqlReader['all'] = (sql, values) =>
    whileAvailable(() => connected((connection) => rowsOf(connection, sql, values)))
  return { all, first: async (sql, values) => (await all(sql, values))[0] }
}

/** Reads on the connections of knex. */
function mysqlReaderOf({ client }: Knex): SqlReader {
  return mysqlReader(async (work) => {
    const connection: MysqlConnection = await client.acquireConnection()
    try {
      return await work(connection)
    } finally {
      client.releaseConnection(connection)
    }
  })
}

function rowsOf(connection: MysqlConnection, sql: string, values: SqlValue[]): Promise<object[]> {
  const method = connection.execute !== undefined && values.length <= VALUES_OF_PREPARED ? 'execute' : 'query'
  return new Promise((resolve, reject) => {
    connection[method]?.(sql, values, (error, rows) => (error ? reject(error) : resolve(rows as object[])))
  })
}

/** Errors of drivers if there is no connection, or if a transaction could not get its locks. */
const CODES = new Set([
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_SEQUENCE_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ER_CON_COUNT_ERROR',
  'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_SERVER_SHUTDOWN',
  'ER_CONNECTION_KILLED',
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
])

/** Errors of drivers may come from another realm, and so be no `Error` of this one. */
interface DriverError {
  name?: unknown
  code?: unknown
  fatal?: unknown
}

/** The driver's code of an error, such as `ER_LOCK_DEADLOCK`; undefined for other errors. */
export function driverCode(error: unknown): string | undefined {
  const { code } = (error ?? {}) as DriverError
  return code === undefined ? undefined : String(code)
}

function isUnavailable(error: unknown): boolean {
  const { name, fatal } = (error ?? {}) as DriverError
  // mysql2 sets `fatal` if a connection is lost; knex throws this name if its pool has no connection left.
  return fatal === true || name === 'KnexTimeoutError' || CODES.has(driverCode(error) ?? '')
}

/** @throws StoreUnavailableError if the database cannot be reached, and anything else that the work throws. */
export async function whileAvailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw isUnavailable(error) ? new StoreUnavailableError(error) : error
  }
}

/** Inserts the rows whose key is not stored yet. All have the same columns. */
export async function insertNew(writer: SqlWriter, table: string, rows: object[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  for (const part of parts(rows, ROWS_A_STATEMENT)) {
    const places = `(${anyOf(columns)})`
    await writer.run(
      `insert into ${table} (${columns.join(', ')}) values ${part.map(() => places).join(', ')}
       ${writer.isMysql ? untouched(columns) : 'on conflict do nothing'}`,
      part.flatMap((row) => columns.map((column) => sqlValue((row as Record<string, unknown>)[column]))),
    )
    await yieldBetweenStatements()
  }
}

/** Leaves an existing row as it is. `insert ignore` would ignore other errors in a row, too. */
function untouched([column = '']: string[]): string {
  return `on duplicate key update ${column} = ${column}`
}

/** Engines have no booleans of their own, and null for what is missing. */
export function sqlValue(value: unknown): SqlValue {
  return typeof value === 'boolean' ? Number(value) : ((value ?? null) as SqlValue)
}
