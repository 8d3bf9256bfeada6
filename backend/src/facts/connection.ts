import Libsql from 'libsql'
import { LRUCache } from 'lru-cache'

/** What a statement takes. */
export type SqlValue = string | number | Uint8Array | null

/** A row as this module gives it: blobs are always a `Buffer`. */
// biome-ignore lint/suspicious/noExplicitAny: a row has the columns that its statement names; the author of the statement knows them.
export type Row = Record<string, any>

interface Statement {
  all(values: SqlValue[]): Row[]
  /** A row as a list, of a statement that is {@link raw}. */
  get(values: SqlValue[]): unknown[] | undefined
  raw(): Statement
  columns(): { name: string }[]
  run(values: SqlValue[]): { changes: number; lastInsertRowid: number | bigint }
}

interface Driver {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
  readonly inTransaction: boolean
}

const Driver = Libsql as unknown as new (filename: string) => Driver

/** Many more than there are distinct statements. */
const STATEMENTS = 1000

/**
 * One SQLite file, asked synchronously. Statements are prepared once.
 *
 * The driver returns blobs of `all` as `ArrayBuffer` and those of `get` as `Buffer`, and `get` after `all` on one statement
 * returns an old row (libsql 0.5.29): hence two caches, and one kind of blob. It takes 10 µs to make an object of 16 columns, and
 * 7 µs if it only makes a list, and we the object.
 */
export class Sql {
  private driver: Driver
  private readonly lists = new LRUCache<string, Statement>({
    max: STATEMENTS,
    memoMethod: (sql) => this.driver.prepare(sql),
  })
  private readonly firsts = new LRUCache<string, { statement: Statement; columns: string[] }>({
    max: STATEMENTS,
    memoMethod: (sql) => {
      const statement = this.driver.prepare(sql).raw()
      return { statement, columns: statement.columns().map(({ name }) => name) }
    },
  })

  /** @param filename `:memory:` for none. */
  constructor(readonly filename: string) {
    this.driver = new Driver(filename)
  }

  all(sql: string, ...values: SqlValue[]): Row[] {
    const rows = this.lists.memo(sql).all(values)
    for (const row of rows)
      for (const column in row) if (row[column] instanceof ArrayBuffer) row[column] = Buffer.from(row[column])
    return rows
  }

  get(sql: string, ...values: SqlValue[]): Row | undefined {
    const { statement, columns } = this.firsts.memo(sql)
    const found = statement.get(values)
    if (found === undefined) return undefined
    const row: Row = {}
    for (let index = 0; index < columns.length; index++) row[columns[index] as string] = found[index]
    return row
  }

  /** @returns How many rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    return this.lists.memo(sql).run(values).changes
  }

  /** @returns The id of the row that was inserted; undefined if none was. */
  insert(sql: string, ...values: SqlValue[]): number | undefined {
    const { changes, lastInsertRowid } = this.lists.memo(sql).run(values)
    return changes === 0 ? undefined : Number(lastInsertRowid)
  }

  /** Statements without values, several at once: the schema, pragmas, the bounds of transactions. */
  exec(sql: string): void {
    this.driver.exec(sql)
  }

  get inTransaction(): boolean {
    return this.driver.inTransaction
  }

  /** What asks it afterwards gets an error: the driver would abort the process. */
  close(): void {
    // The driver closes the file only when its statements are collected, and a transaction would last until then.
    if (this.driver.inTransaction) this.driver.exec('rollback')
    this.driver.close()
    this.driver = CLOSED
    this.lists.clear()
    this.firsts.clear()
  }
}

const refuse = (): never => {
  throw new Error('the file is closed')
}
const CLOSED: Driver = { prepare: refuse, exec: refuse, close() {}, inTransaction: false }
