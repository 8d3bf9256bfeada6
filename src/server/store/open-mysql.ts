import createKnex, { type Knex } from 'knex'
import { createPool } from 'mysql2'
import { mysqlReader } from '../../../backend/src/storage/sql/database.js'
import type { Database } from './open-database.js'

/** Connections of each of the two pools: writers take turns anyway. */
const WRITERS = 4
const READERS = 16
/** How long a connection may take to be there, in milliseconds: who asks is told to try again after that. */
const CONNECT_WITHIN = 5000

/**
 * What a connection has to do whatever the server's defaults are: refuse what does not fit instead of cutting it, and take
 * what is written between quotes as the driver writes it.
 */
const SETUP = "set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"

/** knex would write of connections that are lost on the console; whoever needed one is told. */
const QUIET = { warn() {}, error() {}, deprecate() {}, debug() {} }

/** What of a connection of the driver below knex is used here. */
interface CallbackConnection {
  query(sql: string, done: (error: unknown) => void): void
}

/**
 * Opens a store on MySQL or MariaDB: a pool for writes and one for reads, so that no read waits behind a write. A
 * connection that is lost is made anew when it is next needed. Any number of processes may have it.
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
