import type { Db } from 'mongodb'
import { MongoLog } from '../facts/mongo-log.js'
import { MysqlLog, type MysqlQuery } from '../facts/mysql-log.js'
import type { SharedLog } from '../facts/shared-log.js'
import type { HostDatabase, SqlDatabase } from '../graph/host-database.js'
import { sha256 } from '../graph/native-hash.js'
import { toHex, utf8 } from '../protocol/bytes.js'
import { CodedError, messageOf } from '../protocol/coded-error.js'
import { queryOf } from './host-sql.js'

/** The database user of a host may not do what is needed. */
export class MissingGrantError extends CodedError {
  override readonly name = 'MissingGrantError'
  readonly code = 'MISSING_GRANT'
}

function isMongo(database: HostDatabase): boolean {
  return 'databaseName' in database
}

/**
 * Opens the log in a host's database, or makes it.
 *
 * @throws MissingGrantError if the user of the database lacks a right that is needed; else what the driver throws.
 */
export async function openHostLog(database: HostDatabase): Promise<SharedLog> {
  try {
    if (isMongo(database)) return await MongoLog.open(database as Db)
    const query = queryOf(database as SqlDatabase)
    const log = await MysqlLog.open(query)
    await tryRights(query)
    return log
  } catch (error) {
    const missing = missingGrant(error)
    if (missing === undefined) throw error
    const on = isMongo(database)
      ? 'the role readWrite on that database'
      : 'SELECT, INSERT, UPDATE, DELETE and CREATE on that database'
    throw new MissingGrantError(
      `the database user may not ${missing}: grant it ${on} (${messageOf(error)})`,
      { cause: error },
    )
  }
}

/** Statements that change nothing, and need the rights that writing and tidying up need. */
async function tryRights(query: MysqlQuery): Promise<void> {
  await query(
    "insert ignore into minetree_log_meta select name, value from minetree_log_meta where name = ''",
    [],
  )
  await query("delete from minetree_chunk where owner = ''", [])
}

/** What a database says that its user may not do; undefined for any other error. */
function missingGrant(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  const text = messageOf(error)
  // https://mariadb.com/kb/en/mariadb-error-codes/: 1044, 1142 and 1227.
  if (
    ['ER_DBACCESS_DENIED_ERROR', 'ER_TABLEACCESS_DENIED_ERROR', 'ER_SPECIFIC_ACCESS_DENIED_ERROR'].includes(
      String(code),
    )
  )
    return /([A-Z][A-Z ,]+) command denied/.exec(text)?.[1]?.trim() ?? 'use the database'
  // https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml: Unauthorized.
  if (code === 13) return /execute command \{ (\w+)/.exec(text)?.[1] ?? 'use the database'
  return undefined
}

/** What tells a host's databases apart, as 8 hexadecimal digits; no secret goes into it. */
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
