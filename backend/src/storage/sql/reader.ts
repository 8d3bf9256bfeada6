import type { Knex } from 'knex'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, outpointPair } from '../rows/columns.js'
import { isMysql } from './dialect.js'
import { mysqlReaderOf } from './mysql-reader.js'

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
