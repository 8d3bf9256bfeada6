import { access, constants, mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import createKnex, { type Knex } from 'knex'
import BetterSqlite3Client from 'knex/lib/dialects/better-sqlite3/index.js'
import Libsql from 'libsql'
import { LRUCache } from 'lru-cache'
import type { SqlReader, SqlValue, SqlWriter } from '../../../backend/src/storage/sql/database.js'
import type { Config } from '../config/config.js'
import { mongoPlace } from '../config/mongo-url.js'

/** More than the store has forms of statements, but for long lists. */
const STATEMENTS = 500

/** What of libsql is used here, in simpler types than its own. */
interface Statement {
  all(values: SqlValue[]): unknown[]
  get(values: SqlValue[]): unknown
  run(values: SqlValue[]): unknown
}

interface Connection {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
}

const LibsqlConnection = Libsql as unknown as new (filename: string) => Connection

/** A connection that prepares each statement once. */
class PreparingConnection extends LibsqlConnection {
  private readonly statements = new LRUCache<string, Statement>({ max: STATEMENTS })

  override prepare(sql: string): Statement {
    const known = this.statements.get(sql)
    if (known !== undefined) return known
    const statement = super.prepare(sql)
    this.statements.set(sql, statement)
    return statement
  }
}

/** knex's better-sqlite3 dialect on libsql, which speaks its API and ships its binaries through the registry. */
class LibsqlClient extends BetterSqlite3Client {
  override _driver(): unknown {
    return PreparingConnection
  }

  /**
   * SQLite undoes a transaction by itself where the disk is full. The rollback that knex then asks for fails, and knex would
   * tell of that instead of what went wrong.
   */
  override async _query<Query extends { sql: string }>(connection: unknown, query: Query): Promise<Query> {
    try {
      return await super._query(connection, query)
    } catch (error) {
      const isUndone = query.sql === 'ROLLBACK' && /no transaction is active/.test(String(error))
      if (isUndone) return query
      throw error
    }
  }

  /**
   * Asks the connection of a transaction; that of the client itself, knex gives to one after another.
   *
   * @throws Error where the transaction is over.
   */
  direct(trx: Pick<Knex.Transaction, 'isCompleted'>): SqlWriter | undefined {
    if (this.transacting !== true) return undefined
    const ask = async <Result>(sql: string, by: (statement: Statement) => Result): Promise<Result> => {
      const connection = (await this.acquireConnection()) as Connection
      if (trx.isCompleted()) throw new Error('the database transaction has already ended')
      return by(connection.prepare(sql))
    }
    return {
      isMysql: false,
      all: (sql, values) => ask(sql, (statement) => statement.all(values)),
      first: (sql, values) => ask(sql, (statement) => statement.get(values)),
      run: (sql, values) => ask(sql, (statement) => void statement.run(values)),
    }
  }
}

export interface Database {
  writer: Knex
  reader: SqlReader
  /** Whether other processes may write to it, too. */
  isShared: boolean
  close(): Promise<void>
}

type Place = Pick<Config, 'dataDir' | 'knexUrl'>

/** Opens the store that the settings name. @throws as {@link openSqlite} does. */
export async function openDatabase({ dataDir, knexUrl }: Place): Promise<Database> {
  return knexUrl === undefined ? await openSqlite(dataDir) : await mysqlAt(knexUrl)
}

/** Connections to it of their own: for another thread of the process that has it open. */
export async function connectDatabase({ dataDir, knexUrl }: Place): Promise<Database> {
  return knexUrl === undefined ? await connectSqlite(dataDir) : await mysqlAt(knexUrl)
}

async function mysqlAt(url: string): Promise<Database> {
  // As with that of MongoDB: its driver takes a while to load, and most hosts need none.
  const { openMysql } = await import('./open-mysql.js')
  return openMysql(url)
}

/** Where the store is, for whoever reads of it; without what opens it. */
export function placeOf({ dataDir, knexUrl, mongoUrl }: Place & Pick<Config, 'mongoUrl'>): string {
  if (mongoUrl !== undefined) return mongoPlace(mongoUrl)
  if (knexUrl === undefined) return dataDir
  const { host, pathname } = new URL(knexUrl)
  return `mysql://${host}${pathname}`
}

/**
 * Opens the embedded store, `minetree.sqlite` in a folder that is made where it is missing: one connection for
 * writes and one for reads, so that a read sees the last committed state while a write is under way. One process
 * has it at a time.
 *
 * @throws what the file system or SQLite throws where the folder or the file cannot be used, and Error where
 * another process has it.
 */
export async function openSqlite(folder: string): Promise<Database> {
  await makeFolder(folder)
  const unlock = lock(folder)
  try {
    const { close, ...database } = await connectSqlite(folder)
    return {
      ...database,
      async close() {
        await close()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw error
  }
}

/**
 * Makes a folder and those above it that are missing. Not by `mkdir` with `recursive`, which tries forever where a file system
 * says of a folder that it is not there and cannot be made, as `/proc` does.
 *
 * @throws what the file system throws where a folder cannot be made, or nothing can be written into it.
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

/** The connections alone: for another thread of the process that has the store open. */
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
      all: async (sql, values) => connection.prepare(sql).all(values),
      first: async (sql, values) => connection.prepare(sql).get(values),
    }
    return { writer, reader, isShared: false, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Submissions are taken one at a time, and what spends an output is asked before it is written: two processes would
 * each let its own spender in. SQLite's lock on a file of its own keeps the second one out, and ends with the process
 * that holds it, however that ends.
 */
function lock(folder: string): () => void {
  const connection = openFile(join(folder, 'minetree.lock'))
  try {
    connection.exec('pragma busy_timeout = 0; begin exclusive;')
  } catch (cause) {
    connection.close()
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'SQLITE_BUSY')) throw cause
    throw new Error('another minetree process has it open', { cause })
  }
  return () => connection.close()
}

/** @throws Error that says what SQLite does not: libsql gives the bare number of its error. */
function openFile(filename: string): Connection {
  try {
    return new LibsqlConnection(filename)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    if (!/ConnectionFailed\(.*: 14\)?/s.test(reason)) throw cause
    throw new Error(`SQLite cannot open or create ${filename}: is the folder writable?`, { cause })
  }
}

function connectWriter(filename: string): Knex {
  return createKnex({
    client: LibsqlClient as unknown as typeof Knex.Client,
    connection: { filename },
    useNullAsDefault: true,
    pool: {
      min: 1,
      max: 1,
      afterCreate: (connection: Connection, done: (error?: unknown) => void) => {
        // FULL: what was acknowledged is on the disk, power loss or not; in WAL mode that is one sync a commit.
        connection.exec('pragma synchronous = full; pragma busy_timeout = 5000;')
        done()
      },
    },
  })
}
