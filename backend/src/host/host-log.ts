import type { Db } from 'mongodb'
import { MongoLog } from '../facts/mongo-log.js'
import { MysqlLog } from '../facts/mysql-log.js'
import type { SharedLog } from '../facts/shared-log.js'
import type { HostDatabase, SqlDatabase } from '../graph/host-database.js'
import { sha256 } from '../graph/native-hash.js'
import { toHex, utf8 } from '../protocol/bytes.js'
import { isMysql, queryOf } from './host-sql.js'

function isMongo(database: HostDatabase): boolean {
  return 'databaseName' in database
}

/**
 * Opens the log in a host's database, or makes it.
 *
 * @throws GeneralError `MISSING_GRANT` if the user of the database lacks a right that is needed; else what the driver throws.
 */
export async function openHostLog(database: HostDatabase): Promise<SharedLog> {
  if (isMongo(database)) return await MongoLog.open(database as Db)
  return await MysqlLog.open(queryOf(database as SqlDatabase))
}

/** How a thread connects to a host's database by itself. */
export type Connection = Record<string, unknown>

/** That of a host on mysql2; undefined where another thread cannot have the same. */
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
    // It has code of the host.
    return undefined
  }
}

interface KnexClient {
  driverName?: string
  config?: { connection?: unknown; pool?: { afterCreate?: unknown } }
  connectionSettings?: Connection
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
