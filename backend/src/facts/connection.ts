import { createRequire } from 'node:module'

export type SqlValue = string | number | Uint8Array | null

/** A row as this module gives it: blobs are always a `Buffer`. */
// biome-ignore lint/suspicious/noExplicitAny: a row has the columns that its statement names; the author of the statement knows them.
export type Row = Record<string, any>

/** What both drivers can do, in the form that libsql has. Its errors have a code such as `SQLITE_BUSY`. */
interface Driver {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
  readonly inTransaction: boolean
}
interface Statement {
  /** None where it returns no rows. */
  columns(): { name: string }[]
  /** The same statement, whose rows are lists; of one that returns rows. */
  raw(): Statement
  all(values: SqlValue[]): unknown[][]
  get(values: SqlValue[]): unknown[] | undefined
  run(values: SqlValue[]): { changes: number; lastInsertRowid: number | bigint }
}
interface Prepared {
  statement: Statement
  columns: string[]
}

/** Each number of rows is a statement of its own. */
const ROWS_AT_ONCE = 8

/**
 * One SQLite file, asked synchronously. Statements are prepared once, and kept: there are as many as the code writes. They are in two
 * maps, as `get` after `all` on one statement returns an old row (libsql 0.5.29). Both drivers take longer to make an object of 16
 * columns than to make a list, and us the object.
 */
export class Sql {
  private driver: Driver
  private readonly firsts = new Map<string, Prepared>()
  private readonly others = new Map<string, Prepared>()

  /**
   * @param filename `:memory:` for none.
   * @param patience Milliseconds that a statement waits for another connection, with this thread blocked. Even a read has to: after
   * a kill, the first connection recovers the WAL, and keeps all others out meanwhile.
   */
  constructor(
    readonly filename: string,
    patience = 5000,
  ) {
    this.driver = open(filename)
    this.driver.exec(`pragma busy_timeout = ${patience}`)
  }

  all(sql: string, ...values: SqlValue[]): Row[] {
    const { statement, columns } = this.prepared(this.others, sql)
    const rows: Row[] = []
    for (const list of statement.all(values)) rows.push(rowOf(columns, list))
    return rows
  }

  get(sql: string, ...values: SqlValue[]): Row | undefined {
    const { statement, columns } = this.prepared(this.firsts, sql)
    const list = statement.get(values)
    return list && rowOf(columns, list)
  }

  /** @returns How many rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    return this.prepared(this.others, sql).statement.run(values).changes
  }

  /** @returns The id of the row that was inserted; undefined if none was. */
  insert(sql: string, ...values: SqlValue[]): number | undefined {
    const { changes, lastInsertRowid } = this.prepared(this.others, sql).statement.run(values)
    return changes === 0 ? undefined : Number(lastInsertRowid)
  }

  /**
   * Inserts rows, several with a statement.
   *
   * @param into `insert into` with the table and its columns.
   */
  insertAll(into: string, rows: readonly (readonly SqlValue[])[]): void {
    for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
      const some = rows.slice(at, at + ROWS_AT_ONCE)
      const row = `(?${', ?'.repeat((some[0]?.length ?? 1) - 1)})`
      this.run(`${into} values ${row}${`, ${row}`.repeat(some.length - 1)}`, ...some.flat())
    }
  }

  /** Statements without values, several at once: the schema, pragmas, the bounds of transactions. */
  exec(sql: string): void {
    this.driver.exec(sql)
  }

  get inTransaction(): boolean {
    return this.driver.inTransaction
  }

  /** What asks it afterwards gets an error: a driver would abort the process. */
  close(): void {
    // libsql closes the file only when its statements are collected, and a transaction would last until then.
    if (this.driver.inTransaction) this.driver.exec('rollback')
    this.driver.close()
    this.driver = CLOSED
    this.firsts.clear()
    this.others.clear()
  }

  private prepared(kept: Map<string, Prepared>, sql: string): Prepared {
    const known = kept.get(sql)
    if (known !== undefined) return known
    const statement = this.driver.prepare(sql)
    const columns = statement.columns().map(({ name }) => name)
    const made = { statement: columns.length > 0 ? statement.raw() : statement, columns }
    kept.set(sql, made)
    return made
  }
}

function rowOf(columns: string[], list: unknown[]): Row {
  const row: Row = {}
  for (let index = 0; index < columns.length; index++) row[columns[index] as string] = list[index]
  return row
}

const refuse = (): never => {
  throw new Error('the file is closed')
}
const CLOSED: Driver = { prepare: refuse, exec: refuse, close() {}, inTransaction: false }

interface NodeSqlite {
  StatementSync: { prototype: object }
  DatabaseSync: new (
    filename: string,
    options: { enableForeignKeyConstraints: boolean; defensive: boolean },
  ) => {
    prepare(sql: string): {
      setReturnArrays(enabled: boolean): void
      columns(): { name: string }[]
      all(...values: SqlValue[]): unknown[][]
      get(...values: SqlValue[]): unknown[] | undefined
      run(...values: SqlValue[]): { changes: number; lastInsertRowid: number }
    }
    exec(sql: string): void
    close(): void
    readonly isTransaction: boolean
  }
}

type Libsql = new (filename: string) => Driver
const require = createRequire(import.meta.url)

/** Opens a file with what the runtime has. @throws Error with the code `SQLITE_CANTOPEN` if it cannot. */
function open(filename: string): Driver {
  const sqlite = nodeSqlite()
  try {
    return sqlite === undefined ? new (require('libsql') as Libsql)(filename) : openWithNode(sqlite, filename)
  } catch (cause) {
    if (!isUnopened(cause)) throw cause
    const message = `SQLite cannot open or create ${filename}: is the folder writable?`
    throw Object.assign(new Error(message, { cause }), { code: CODES[CANTOPEN] })
  }
}

/** libsql only says the number of the error. */
function isUnopened(error: unknown): boolean {
  const { errcode, message } = error as { errcode?: number; message: string }
  return errcode === CANTOPEN || /ConnectionFailed\(.*: 14\b/s.test(message)
}

/** `node:sqlite` of Node 22.16 or later; before that it lacks rows as lists, and `isTransaction`. */
function nodeSqlite(): NodeSqlite | undefined {
  const { emitWarning } = process
  // It says that it is experimental.
  process.emitWarning = () => {}
  try {
    const sqlite = process.getBuiltinModule?.('node:sqlite') as unknown as NodeSqlite | undefined
    return sqlite !== undefined && 'setReturnArrays' in sqlite.StatementSync.prototype ? sqlite : undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

function openWithNode({ DatabaseSync }: NodeSqlite, filename: string): Driver {
  // No schema has foreign keys, and a file that is checked may be damaged.
  const options = { enableForeignKeyConstraints: false, defensive: false }
  const database = new DatabaseSync(filename, options)
  return {
    prepare: (sql) => {
      const statement = coded(() => database.prepare(sql))
      return {
        columns: () => statement.columns(),
        raw() {
          statement.setReturnArrays(true)
          return this
        },
        all: (values) => coded(() => statement.all(...values)).map(withBuffers),
        get(values) {
          const list = coded(() => statement.get(...values))
          return list && withBuffers(list)
        },
        run: (values) => coded(() => statement.run(...values)),
      }
    },
    exec: (sql) => coded(() => database.exec(sql)),
    close: () => database.close(),
    get inTransaction() {
      return database.isTransaction
    },
  }
}

/** Blobs come as `Uint8Array`. */
function withBuffers(list: unknown[]): unknown[] {
  return list.map((value) =>
    value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value,
  )
}

const CANTOPEN = 14
/** The results of SQLite that matter here, by their numbers (https://sqlite.org/rescode.html). */
const CODES: Record<number, string> = {
  3: 'SQLITE_PERM',
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  [CANTOPEN]: 'SQLITE_CANTOPEN',
  19: 'SQLITE_CONSTRAINT',
  26: 'SQLITE_NOTADB',
  4874: 'SQLITE_IOERR_SHMSIZE',
}

/** Gives an error of `node:sqlite` the code that libsql gives it. */
function coded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    const { errcode } = error as { errcode?: number }
    if (errcode !== undefined)
      Object.assign(error as Error, { code: CODES[errcode] ?? CODES[errcode % 256] ?? 'SQLITE_ERROR' })
    throw error
  }
}
