import { access, constants, mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import createKnex, { type Knex } from 'knex'
import BetterSqlite3Client from 'knex/lib/dialects/better-sqlite3/index.js'
import Libsql from 'libsql'
import { LRUCache } from 'lru-cache'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { SqlReader, SqlValue, SqlWriter } from '../../../backend/src/storage/sql/database.js'
import type { Config } from '../config/config.js'
import { mongoPlace } from '../config/mongo-url.js'
import { otherStorage } from './facts/other-storage.js'
import type { Database } from './open-mysql.js'

export type { Database }

/** More than the store has distinct statements, except for long lists. */
const STATEMENTS = 500
/** How long a write waits for that of another thread, and how long between two attempts, in milliseconds. */
const PATIENCE = 60_000
const RETRY_EVERY = 2

/** The part of libsql that is used here, in simpler types than its own. */
interface Statement {
  all(values: SqlValue[]): unknown[]
  get(values: SqlValue[]): unknown
  run(values: SqlValue[]): unknown
}

interface Connection {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
  readonly inTransaction: boolean
}

const LibsqlConnection = Libsql as unknown as new (filename: string) => Connection

/** A connection that prepares each statement once. */
class PreparingConnection extends LibsqlConnection {
  private readonly statements = new LRUCache<string, Statement>({
    max: STATEMENTS,
    memoMethod: (sql) => super.prepare(sql),
  })
  /** With statements of its own: after `all` of a statement, `get` returns the row of the values before (libsql 0.5.29). */
  private readonly firsts = new LRUCache<string, Statement>({
    max: STATEMENTS,
    memoMethod: (sql) => super.prepare(sql),
  })

  override prepare(sql: string): Statement {
    return this.statements.memo(sql)
  }

  first(sql: string, values: SqlValue[]): unknown {
    return this.firsts.memo(sql).get(values)
  }
}

/** knex's better-sqlite3 dialect on libsql, which speaks its API and ships its binaries through the registry. */
class LibsqlClient extends BetterSqlite3Client {
  override _driver(): unknown {
    return PreparingConnection
  }

  /**
   * A transaction takes the write lock when it begins: it could not be upgraded after a commit of another thread. If another
   * thread has the lock, this one stays free while it waits.
   *
   * SQLite rolls a transaction back by itself if the disk is full. knex's own rollback then fails, and knex would report that
   * error instead of the cause.
   */
  override async _query<Query extends { sql: string }>(connection: Connection, query: Query): Promise<Query> {
    if (query.sql === 'BEGIN;') query.sql = 'BEGIN IMMEDIATE;'
    for (const end = monotonic() + PATIENCE; ; await sleep(RETRY_EVERY)) {
      try {
        return await super._query(connection, query)
      } catch (error) {
        const isUndone = query.sql === 'ROLLBACK' && /no transaction is active/.test(String(error))
        if (isUndone) return query
        if (!isBusy(error) || connection.inTransaction || monotonic() > end) throw error
      }
    }
  }

  /**
   * Asks the connection of a transaction; that of the client itself, knex gives to one after another.
   *
   * @throws Error if the transaction is over.
   */
  direct(trx: Pick<Knex.Transaction, 'isCompleted'>): SqlWriter | undefined {
    if (this.transacting !== true) return undefined
    const ask = async <Result>(by: (connection: PreparingConnection) => Result): Promise<Result> => {
      const connection = (await this.acquireConnection()) as PreparingConnection
      if (trx.isCompleted()) throw new Error('the transaction of this statement is over')
      return by(connection)
    }
    return {
      isMysql: false,
      all: (sql, values) => ask((connection) => connection.prepare(sql).all(values)),
      first: (sql, values) => ask((connection) => connection.first(sql, values)),
      run: (sql, values) => ask((connection) => void connection.prepare(sql).run(values)),
    }
  }
}

type Place = Pick<Config, 'dataDir' | 'knexUrl'>

/**
 * Opens the SQL store in the settings.
 *
 * @param open How the embedded store is opened.
 * @throws as {@link openSqlite}.
 */
export async function openDatabase({ dataDir, knexUrl }: Place, open = openSqlite): Promise<Database> {
  if (knexUrl === undefined) return await open(dataDir)
  // Loaded lazily, as that of MongoDB: the driver takes a while, and most hosts do not use it.
  const { openMysql } = await import('./open-mysql.js')
  return openMysql(knexUrl)
}

/** Where the store is, for logs and errors: without credentials. */
export function placeOf({ dataDir, knexUrl, mongoUrl }: Place & Pick<Config, 'mongoUrl'>): string {
  if (mongoUrl !== undefined) return mongoPlace(mongoUrl)
  if (knexUrl === undefined) return dataDir
  const { host, pathname } = new URL(knexUrl)
  return `mysql://${host}${pathname}`
}

/**
 * Opens the embedded store, `minetree.sqlite` in a folder that is created if necessary. One process has it at a time.
 *
 * @throws what the file system or SQLite throws if the folder or the file cannot be used; Error if another process has it.
 */
export async function openSqlite(folder: string): Promise<Database> {
  const unlock = await lockFolder(folder, 'tables')
  try {
    const database = await connectSqlite(folder)
    return { ...database, close: () => database.close().then(unlock) }
  } catch (error) {
    unlock()
    throw error
  }
}

/**
 * Creates the folder of a store, unless it is there, and keeps other processes out until what it returns is called.
 *
 * @throws what the file system or SQLite throws if the folder cannot be used; Error if another process has it, or it holds a store
 * of the other kind.
 */
export async function lockFolder(folder: string, storage: 'tables' | 'facts'): Promise<() => void> {
  await makeFolder(folder)
  const other = otherStorage(folder, storage)
  if (other !== undefined) throw new Error(other)
  return lockFile(folder)
}

/**
 * Creates a folder and its missing parents. Not by `mkdir` with `recursive`, which loops forever where a folder does not exist
 * and cannot be created, as in `/proc`.
 *
 * @throws what the file system throws if a folder cannot be created, or is not writable.
 */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (
      code === 'ENOENT' &&
      dirname(resolve(folder)) !== resolve(folder) &&
      !(await exists(dirname(folder)))
    ) {
      await makeFolder(dirname(folder))
      await mkdir(folder)
    } else if (code !== 'EEXIST') throw error
  }
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

/**
 * One connection for writes and one for reads, so that a read sees the last committed state during a write. Without the lock:
 * for another thread of the process that has the store open.
 */
export async function connectSqlite(folder: string): Promise<Database> {
  const filename = join(folder, 'minetree.sqlite')
  const writer = connectWriter(filename)
  let reading: Connection | undefined
  const close = async (): Promise<void> => {
    reading?.close()
    await writer.destroy()
  }
  try {
    await writer.raw('pragma journal_mode = wal')
    const connection = new PreparingConnection(filename)
    reading = connection
    connection.exec('pragma query_only = on; pragma busy_timeout = 5000;')
    const reader: SqlReader = {
      isEmbedded: true,
      all: async (sql, values) => connection.prepare(sql).all(values),
      first: async (sql, values) => connection.first(sql, values),
    }
    return { writer, reader, isShared: false, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * One process writes at a time, as it checks for conflicting spends before it writes. An exclusive SQLite lock on a separate
 * file keeps a second process out, and ends with the process that holds it, however that ends.
 */
export function lockFile(folder: string, name = 'minetree.lock'): () => void {
  const connection = openFile(join(folder, name))
  try {
    connection.exec('pragma busy_timeout = 0; begin exclusive;')
  } catch (cause) {
    connection.close()
    if (!isBusy(cause)) throw cause
    throw new Error('another minetree process has it open', { cause })
  }
  return () => connection.close()
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY'
}

/** @throws Error with a readable message: libsql gives only the number of the error. */
function openFile(filename: string): Connection {
  try {
    return new LibsqlConnection(filename)
  } catch (cause) {
    if (!/ConnectionFailed\(.*: 14\)?/s.test(messageOf(cause))) throw cause
    throw new Error(`SQLite cannot open or create ${filename}: is the folder writable?`, { cause })
  }
}

/** FULL: what was acknowledged survives a power loss; in WAL mode that costs one sync a commit. */
const DURABLE = 'pragma synchronous = full;'

function connectWriter(filename: string): Knex {
  return createKnex({
    client: LibsqlClient as unknown as typeof Knex.Client,
    connection: { filename },
    useNullAsDefault: true,
    pool: {
      min: 1,
      max: 1,
      afterCreate: (connection: Connection, done: (error?: unknown) => void) => {
        connection.exec(DURABLE)
        done()
      },
    },
  })
}
