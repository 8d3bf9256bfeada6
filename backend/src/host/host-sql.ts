import type { Knex } from 'knex'
import type { MysqlQuery } from '../facts/mysql-log.js'
import type { SqlDatabase } from '../graph/host-database.js'

// biome-ignore lint/suspicious/noExplicitAny: a row has the columns that its statement names; the author of the statement knows them.
export type SqlRow = Record<string, any>

export type Ask = (sql: string, values: readonly unknown[]) => Promise<SqlRow[]>

/** Whether a host's knex, of any version, is on MySQL or MariaDB. */
export function isMysql({ client }: SqlDatabase): boolean {
  return (client as { dialect?: string } | undefined)?.dialect === 'mysql'
}

/** Each driver answers in its own form. */
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

/** Statements for MySQL on a host's knex, with answers as those of its driver. */
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

/** What a host on SQLite, as for tests, reads of a statement for MySQL. */
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
