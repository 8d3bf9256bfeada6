import type { Socket } from 'node:net'
import createKnex, { type Knex } from 'knex'
import Mysql2Client from 'knex/lib/dialects/mysql2/index.js'
import { createPool } from 'mysql2'
import { answeredWithin } from '../../../backend/src/graph/answered-within.js'
import type { SqlReader } from '../../../backend/src/storage/sql/database.js'
import { mysqlReader } from '../../../backend/src/storage/sql/database.js'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { SqlIndexMaintenance } from '../../../backend/src/storage/sql/index-maintenance.js'
import { StoredAncestorQueue } from '../../../backend/src/storage/write/ancestor-queue.js'
import type { OnReorg } from '../../../backend/src/storage/write/graph-store-base.js'
import { StoredSubmissions } from '../../../backend/src/storage/write/held-submissions.js'
import { DatabaseStores } from './database-stores.js'

/** Connections of the two pools: writers wait for each other anyway. */
const WRITERS = 4
const READERS = 16
/** How long connecting may take, in milliseconds. */
const CONNECT_WITHIN = 5000
/**
 * How long a statement may take, in milliseconds: a server that has stopped, or a network that loses everything, does not
 * end a connection. One that reads waits for its connection as well; one of a transaction waits for locks, or migrates.
 */
const WITHIN = { reads: 15_000, writes: 300_000 }

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
  readonly stream: Socket
}

/** The driver's code for a statement without an answer. */
class StatementTimeoutError extends Error {
  override readonly name = 'StatementTimeoutError'
  readonly code = 'PROTOCOL_SEQUENCE_TIMEOUT'

  constructor(milliseconds: number) {
    super(`no answer within ${milliseconds / 1000} seconds`)
  }
}

/**
 * knex's dialect, in which a transaction gives up a connection on which a statement was not answered in time. Maintenance
 * empties whole tables outside of transactions, which may take longer.
 *
 * @param within In milliseconds.
 */
function boundedClient(within: number): typeof Knex.Client {
  class BoundedMysql2Client extends Mysql2Client {
    override async _query<Query extends object>(
      connection: CallbackConnection,
      query: Query,
    ): Promise<Query> {
      if (this.transacting !== true) return await super._query(connection, query)
      return await answeredWithin(within, () => super._query(connection, query), {
        error: () => new StatementTimeoutError(within),
        giveUp: () => connection.stream.destroy(),
      })
    }
  }
  return BoundedMysql2Client as unknown as typeof Knex.Client
}

export interface Database {
  writer: Knex
  reader: SqlReader
  close(): Promise<void>
}

/** The store of a host on MySQL or MariaDB. */
export function openMysqlStores({ url, onReorg }: { url: string; onReorg: OnReorg }): DatabaseStores {
  const { writer, reader, close } = openMysql(url)
  const graph = new SqlGraphStore({ writer, reader, onReorg })
  return new DatabaseStores({
    graph,
    held: new StoredSubmissions(graph.database),
    ancestors: new StoredAncestorQueue(graph.database),
    maintenance: new SqlIndexMaintenance({ writer, reader }),
    close,
  })
}

/**
 * Connects to MySQL or MariaDB: a pool for writes and one for reads, so that no read waits behind a write. The pools
 * reconnect when necessary. Any number of processes may share it.
 *
 * @param url `mysql://user:password@host:port/database`.
 * @param within How long a statement that reads, and one of a transaction, may take, in milliseconds.
 */
export function openMysql(url: string, within = WITHIN): Database {
  const writer: Knex = createKnex({
    client: boundedClient(within.writes),
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
  // Also one that is idle: the pool opens another when it is needed.
  pool.on('connection', (connection) => {
    const { stream } = connection as unknown as CallbackConnection
    stream.setTimeout(2 * within.reads, () => stream.destroy())
  })
  const error = (): Error => new StatementTimeoutError(within.reads)
  return {
    writer,
    reader: mysqlReader((work) => answeredWithin(within.reads, () => work(pool), { error })),
    async close() {
      await pool.promise().end()
      await writer.destroy()
    },
  }
}
