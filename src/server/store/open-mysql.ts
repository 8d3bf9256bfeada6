import createKnex, { type Knex } from 'knex'
import { createPool } from 'mysql2'
import type { SqlReader } from '../../../backend/src/storage/sql/database.js'
import { mysqlReader } from '../../../backend/src/storage/sql/database.js'

/** Connections of the two pools: writers wait for each other anyway. */
const WRITERS = 4
const READERS = 16
/** How long connecting may take, in milliseconds. */
const CONNECT_WITHIN = 5000

/**
 * Whatever the defaults of the server: values that do not fit are refused instead of truncated, and quotes are read as the
 * driver writes them.
 */
const SETUP = "set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"

/** knex would report lost connections on the console; the caller gets an error anyway. */
const QUIET = { warn() {}, error() {}, deprecate() {}, debug() {} }

/** The part of the driver's connection that is used here. */
interface CallbackConnection {
  query(sql: string, done: (error: unknown) => void): void
}

export interface Database {
  writer: Knex
  reader: SqlReader
  /** Whether other processes may write to it, too. */
  isShared: boolean
  close(): Promise<void>
}

/**
 * Opens a store on MySQL or MariaDB: a pool for writes and one for reads, so that no read waits behind a write. The pools
 * reconnect when necessary. Any number of processes may share it.
 *
 * @param url `mysql://user:password@host:port/database`.
 */
export function openMysql(url: string): Database {
  const writer: Knex = createKnex({
    client: 'mysql2',
    connection: { uri: url, connectTimeout: CONNECT_WITHIN },
    log: QUIET,
    acquireConnectionTimeout: 2 * CONNECT_WITHIN,
    pool: {
      min: 0,
      max: WRITERS,
      afterCreate: (connection: CallbackConnection, done: (error: unknown, made: unknown) => void) =>
        connection.query(SETUP, (error) => done(error, connection)),
    },
  })
  const pool = createPool({ uri: url, connectTimeout: CONNECT_WITHIN, connectionLimit: READERS })
  return {
    writer,
    reader: mysqlReader((work) => work(pool)),
    isShared: true,
    async close() {
      await pool.promise().end()
      await writer.destroy()
    },
  }
}
