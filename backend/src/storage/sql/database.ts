import type { Knex } from 'knex'
import { StoreUnavailableError } from '../../graph/store-unavailable-error.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, outpointPair, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { rest } from '../write/rest.js'

export type SqlValue = string | number | Uint8Array | null

/** A row: its columns are what the SQL beside the call says they are. */
// biome-ignore lint/suspicious/noExplicitAny: see above; every use turns columns into records at once.
export type Row = any

/**
 * Runs reads. The store's reads are plain SQL that SQLite, MySQL and MariaDB all take, and this is all they ask for:
 * a host that can keep prepared statements gives its own.
 */
export interface SqlReader {
  all(sql: string, values: SqlValue[]): Promise<Row[]>
  /** The first row; undefined where there is none. */
  first(sql: string, values: SqlValue[]): Promise<Row | undefined>
}

/** Runs what a write is made of: plain SQL, too, and with what it has written so far. */
export interface SqlWriter extends SqlReader {
  /** Where SQL differs. */
  readonly isMysql: boolean
  run(sql: string, values: SqlValue[]): Promise<void>
}

/** A knex client whose driver can be asked past knex, which takes several times as long as a short statement. */
interface DirectClient {
  /** @param trx After its end nothing is asked: its connection is another's by then. */
  direct?: (trx: Pick<Knex.Transaction, 'isCompleted'>) => SqlWriter | undefined
}

/** Reads with what knex is connected to: in a transaction, what it has written so far. */
export function knexReader(knex: Knex): SqlReader {
  // What a transaction asks, knex tells of: it may be over.
  if (isMysql(knex) && knex.isTransaction !== true) return mysqlReaderOf(knex)
  return knexWriter(knex)
}

/** Writes with what knex is connected to; of a transaction, with the others of that or not at all. */
export function knexWriter(knex: Knex): SqlWriter {
  const direct = (knex.client as DirectClient | undefined)?.direct?.(knex as Knex.Transaction)
  if (direct !== undefined) return direct
  const all = async (sql: string, values: SqlValue[]): Promise<Row[]> => {
    // MySQL answers rows and fields; SQLite answers rows.
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

/** A condition that matches any of the outpoints; its values are those of {@link outpointValues}. */
export function anyOutpoint(outpoints: readonly Outpoint[]): string {
  return anyPair(['txid', 'vout'], outpoints)
}

/**
 * The same of two columns; row values are written otherwise, and sought otherwise, in every engine. Those of one transaction
 * are one range to look through, and thousands may be asked for.
 */
export function anyPair([txid, vout]: [string, string], outpoints: readonly Outpoint[]): string {
  if (areOfOne(outpoints)) return `(${txid} = ? and ${vout} in (${anyOf(outpoints)}))`
  return `(${outpoints.map(() => `(${txid} = ? and ${vout} = ?)`).join(' or ')})`
}

/** The values of such a condition, in its order. */
export function outpointValues(outpoints: readonly Outpoint[]): SqlValue[] {
  const [first] = outpoints
  if (first === undefined || !areOfOne(outpoints)) return outpoints.flatMap(outpointPair)
  return [hashColumn(first.txid), ...outpoints.map(({ vout }) => vout)]
}

function areOfOne(outpoints: readonly Outpoint[]): boolean {
  return outpoints.length > 1 && outpoints.every(({ txid }) => txid === outpoints[0]?.txid)
}

/** What stands between the brackets of an \`in\`: a place for each of the values. */
export function anyOf(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ')
}

/** Whether a database is MySQL or MariaDB, where SQL differs. A host that looks at factories may have none yet. */
export function isMysql(knex: Knex): boolean {
  return (knex.client as { dialect?: unknown } | undefined)?.dialect === 'mysql'
}

type Done = (error: unknown, rows: unknown) => void
type Ask = (sql: string, values: SqlValue[], done: Done) => void

/** What of mysql2 is used here, of its connections and its pools alike. */
interface Asked {
  query: Ask
  /** Prepares a statement once for each connection; `mysql`, the driver before mysql2, has none. */
  execute?: Ask
}

/**
 * With more values it is a list, which may be of any length: each length would be another statement to prepare, and
 * servers keep so many and no more.
 */
const VALUES_OF_PREPARED = 6

/**
 * Reads on MySQL and MariaDB past knex and past promises of the driver, which take longer than a short read does, with
 * statements that the server has read once.
 *
 * @param take Runs with what can be asked.
 * @throws StoreUnavailableError where the database is away.
 */
export function mysqlReader(
  take: <Result>(work: (asked: Asked) => Promise<Result>) => Promise<Result>,
): SqlReader {
  const all: SqlReader['all'] = (sql, values) =>
    whileAvailable(() => take((asked) => answerOf(asked, sql, values)))
  return { all, first: async (sql, values) => (await all(sql, values))[0] }
}

/** Reads on the connections that knex has, where it is on MySQL. */
export function mysqlReaderOf({ client }: Knex): SqlReader {
  return mysqlReader(async (work) => {
    const connection: Asked = await client.acquireConnection()
    try {
      return await work(connection)
    } finally {
      client.releaseConnection(connection)
    }
  })
}

function answerOf(asked: Asked, sql: string, values: SqlValue[]): Promise<object[]> {
  const how = asked.execute !== undefined && values.length <= VALUES_OF_PREPARED ? 'execute' : 'query'
  return new Promise((resolve, reject) => {
    asked[how]?.(sql, values, (error, rows) => (error ? reject(error) : resolve(rows as object[])))
  })
}

/** What the drivers say where there is no connection, or none left, and where a transaction found no turn. */
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

/** What errors of drivers have; they may be of another realm, and so no `Error` of this one. */
interface DriverError {
  name?: unknown
  code?: unknown
  fatal?: unknown
}

/** What a driver calls what went wrong, as `ER_LOCK_DEADLOCK`; undefined for what is no error of a driver. */
export function driverCode(error: unknown): string | undefined {
  const { code } = (error ?? {}) as DriverError
  return code === undefined ? undefined : String(code)
}

function isAway(error: unknown): boolean {
  const { name, fatal } = (error ?? {}) as DriverError
  // `fatal` is what mysql2 says of a connection that is not usable any more; the name, knex of a pool that has none.
  return fatal === true || name === 'KnexTimeoutError' || CODES.has(driverCode(error) ?? '')
}

/** Does something with a database. @throws StoreUnavailableError where it is away, and what the driver throws else. */
export async function whileAvailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw isAway(error) ? new StoreUnavailableError(error) : error
  }
}

/** What stands in a row that is told. */
type NewRecords = SqlValue | boolean | undefined

/** Inserts those rows whose key is not there. All have the same columns. */
export async function insertNew(writer: SqlWriter, table: string, rows: object[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  for (const part of parts(rows, ROWS_A_STATEMENT)) {
    const places = `(${columns.map(() => '?').join(', ')})`
    await writer.run(
      `insert into ${table} (${columns.join(', ')}) values ${part.map(() => places).join(', ')}
       ${writer.isMysql ? untouched(columns) : 'on conflict do nothing'}`,
      part.flatMap((row) =>
        columns.map((column) => columnValue((row as Record<string, NewRecords>)[column])),
      ),
    )
    await rest()
  }
}

/** What leaves a row as it is. MySQL's own way to ignore a conflict ignores whatever else is wrong with a row, too. */
function untouched([column = '']: string[]): string {
  return `on duplicate key update ${column} = ${column}`
}

function columnValue(told: NewRecords): SqlValue {
  return typeof told === 'boolean' ? Number(told) : (told ?? null)
}
