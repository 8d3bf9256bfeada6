import { CHUNK_BYTES } from '../graph/records.js'
import { toHex } from '../protocol/bytes.js'
import {
  asked,
  type Batch,
  bodyOf,
  CHANGE,
  type Chunk,
  COPIED_FROM,
  COPY_OF,
  chunkGroups,
  chunksAt,
  grouped,
  identify,
  isBehind,
  type LogMeta,
  type LogRow,
  layOut,
  type Note,
  OtherLogError,
  orMissingGrant,
  type Place,
  type RowKind,
  type RowsPage,
  type SharedLog,
  type SharedLogOptions,
} from './shared-log.js'

/** Runs a statement with its values. The result has the rows first, as from knex's `raw` and from `query` of mysql2's promise pool. */
export type MysqlQuery = (sql: string, values: unknown[]) => PromiseLike<unknown>

// biome-ignore lint/suspicious/noExplicitAny: a row has the columns that its statement names; the author of the statement knows them.
type Row = Record<string, any>

const TABLES = [
  `create table if not exists minetree_log (seq bigint unsigned not null primary key, kind tinyint unsigned not null,
    fact_key varbinary(1024) not null, at bigint unsigned not null, first bigint unsigned not null, batch binary(8) not null,
    length int unsigned not null, chunks binary(32), body longblob, key fact (kind, fact_key)) engine = InnoDB`,
  `create table if not exists minetree_chunk (owner binary(32) not null, position int unsigned not null,
    bytes mediumblob not null, checksum binary(32) not null, first bigint unsigned not null,
    primary key (owner, position), key first (first, owner)) engine = InnoDB`,
  `create table if not exists minetree_log_meta (name varchar(32) not null primary key, value varchar(255) not null)
    engine = InnoDB`,
  `create table if not exists minetree_note (name varbinary(1024) not null primary key, value longblob not null) engine = InnoDB`,
]
const RIGHTS = 'SELECT, INSERT, UPDATE, DELETE and CREATE'
/** Statements that change nothing but need the same rights as writing. */
const TRIED = [
  "insert ignore into minetree_log_meta select name, value from minetree_log_meta where name = ''",
  'insert into minetree_log select * from minetree_log where seq = 0',
  'update minetree_log set at = at where seq = 0',
  "insert into minetree_chunk select * from minetree_chunk where owner = ''",
  "delete from minetree_chunk where owner = ''",
  "update minetree_note set value = value where name = ''",
  "delete from minetree_note where name = ''",
]
const COLUMNS = 'seq, kind, fact_key, at, first, batch, length, chunks'
/** Selects the values of a row, provided that a given row of a batch exists. */
const AFTER_ROW = `select ${'?, '.repeat(8)}? from minetree_log where seq = ? and batch = ?`
/** The most rows of a batch inserted that way. */
const CONDITIONAL = 16

/** A log in MySQL or MariaDB. Each statement is its own transaction: a batch is one statement, after those of its chunks. */
export class MysqlLog implements SharedLog {
  private constructor(
    private readonly query: MysqlQuery,
    readonly id: string,
    private readonly options: SharedLogOptions,
    readonly warning: string | undefined,
  ) {}

  /**
   * Opens the log of a database, or creates it.
   *
   * @throws GeneralError `MISSING_GRANT` if the database user lacks a right; else what the driver throws.
   */
  static async open(query: MysqlQuery, options: SharedLogOptions = {}): Promise<MysqlLog> {
    const rights = options.isRead ? 'SELECT' : RIGHTS
    return await orMissingGrant(rights, () => MysqlLog.openAllowed(query, options))
  }

  /** A log that was opened before, over another connection. */
  static over(query: MysqlQuery, { id, ...options }: SharedLogOptions & { id: string }): MysqlLog {
    return new MysqlLog(query, id, options, undefined)
  }

  private static async openAllowed(query: MysqlQuery, options: SharedLogOptions): Promise<MysqlLog> {
    const all = async (sql: string, values: unknown[] = []): Promise<Row[]> =>
      rowsIn(await query(sql, values))
    const isThere = async (table: string): Promise<boolean> => {
      try {
        await query(`select 1 as one from ${table} limit 1`, [])
        return true
      } catch (error) {
        if (codeOf(error) !== 'ER_NO_SUCH_TABLE') throw error
        return false
      }
    }
    const meta: LogMeta = {
      async get(name) {
        if (!(await isThere('minetree_log_meta'))) return undefined
        const [row] = await all('select value from minetree_log_meta where name = ?', [name])
        return row && String(row.value)
      },
      async add(name, value) {
        await query('insert ignore into minetree_log_meta values (?, ?)', [name, value])
      },
      async make() {
        // Existing tables take no right to create tables.
        for (const table of TABLES) {
          const [, name = ''] = /exists (\w+)/.exec(table) ?? []
          if (!(await isThere(name))) await query(table, [])
        }
      },
      isEmpty: async () =>
        !(await isThere('minetree_log')) || (await all('select seq from minetree_log limit 1')).length === 0,
    }
    const id = await identify(meta, options)
    if (!options.isRead) for (const statement of TRIED) await query(statement, [])
    return new MysqlLog(query, id, options, await warningOf(all))
  }

  async insert(batch: Batch): Promise<boolean> {
    const { first, id, at, rows, after } = batch
    const isConditional = after !== undefined && after.seq > 0 && rows.length <= CONDITIONAL
    if (!isConditional && (await isBehind(this, batch))) return false
    const stored = layOut({ id, rows })
    for (const chunks of chunkGroups(stored))
      await this.all(
        `insert ignore into minetree_chunk (owner, position, bytes, checksum, first) values ${tuples(chunks, 5)}`,
        chunks.flatMap(({ owner, position, bytes, checksum }) => [
          buffer(owner),
          position,
          buffer(bytes),
          ...[checksum, first],
        ]),
      )
    const values = stored.map(({ kind, key, body, chunks, at: own = at }, index) => [
      ...[first + index, kind, buffer(key), own, first, buffer(id), body.length],
      ...[chunks === undefined ? null : buffer(chunks), chunks === undefined ? buffer(body) : null],
    ])
    const into = `insert into minetree_log (${COLUMNS}, body)`
    try {
      if (!isConditional) {
        await this.all(`${into} values ${tuples(rows, 9)}`, values.flat())
        return true
      }
      // Saves a round trip: the statement itself checks that the last row read by the writer is there.
      const inserted = await this.changed(
        `${into} ${values.map(() => AFTER_ROW).join(' union all ')}`,
        values.flatMap((row) => [...row, after.seq, Buffer.from(after.batch, 'hex')]),
      )
      if (inserted > 0) return true
      // Throws if that row is gone because the log is another one.
      await isBehind(this, batch)
    } catch (error) {
      if (codeOf((error as Error).cause) !== 'ER_DUP_ENTRY') throw error
    }
    const [there] = await this.all('select batch from minetree_log where seq = ?', [first])
    if (there?.batch.equals(id) === true) return true
    await this.deleteChunks(stored.flatMap(({ chunks }) => chunks ?? []))
    return false
  }

  async collect({ from, to }: { from: number; to: number }): Promise<void> {
    const range = [from, to]
    const owners = await this.all(
      'select distinct owner from minetree_chunk where first > ? and first <= ?',
      range,
    )
    if (owners.length === 0) return
    const rows = await this.all(
      'select chunks from minetree_log where seq > ? and seq <= ? and chunks is not null',
      range,
    )
    const named = new Set(rows.map(({ chunks }) => toHex(chunks)))
    await this.deleteChunks(owners.flatMap(({ owner }) => (named.has(toHex(owner)) ? [] : [owner])))
  }

  async after(place: Place, { limit, maxBytes, onDamage }: RowsPage): Promise<LogRow[]> {
    const from = Math.max(place.seq, 1)
    const rows = await this.all(`select ${COLUMNS} from minetree_log where seq >= ? order by seq limit ?`, [
      from,
      limit + 1,
    ])
    const own = place.seq === 0 ? undefined : rows.shift()
    if (place.seq > 0 && (own?.seq !== place.seq || own?.batch.toString('hex') !== place.batch))
      throw new OtherLogError(place)
    let bytes = 0
    const end = rows.findIndex(({ length }, index) => {
      bytes += length
      return index > 0 && bytes > maxBytes
    })
    return await this.withBodies(end < 0 ? rows : rows.slice(0, end), onDamage)
  }

  async get(kind: RowKind, key: Uint8Array): Promise<LogRow | undefined> {
    const rows = await this.all(
      `select ${COLUMNS} from minetree_log where kind = ? and fact_key = ? order by seq desc limit 1`,
      [kind, buffer(key)],
    )
    return (await this.withBodies(rows))[0]
  }

  async discard(seqs: readonly number[]): Promise<void> {
    for (const some of grouped(seqs, DISCARDED_AT_ONCE)) {
      const where = `seq in (${some.map(() => '?')})`
      const owned = await this.all(
        `select chunks from minetree_log where ${where} and chunks is not null`,
        some,
      )
      // A fact must not point at missing chunks. Changes keep their rows: all but the shortest of their bodies are in chunks.
      const facts = `update minetree_log set body = null, chunks = null where ${where} and kind <> ${CHANGE}`
      await this.all(facts, some)
      await this.deleteChunks(owned.map(({ chunks }) => chunks))
    }
  }

  async last(): Promise<number> {
    const [row] = await this.all('select max(seq) as seq from minetree_log', [])
    return Number(row?.seq ?? 0)
  }

  async notes(after: string, limit: number): Promise<Note[]> {
    const rows = await this.all(
      'select name, value from minetree_note where name > ? order by name limit ?',
      [Buffer.from(after), limit],
    )
    return rows.map(({ name, value }) => ({ name: String(name), value: String(value) }))
  }

  async note(notes: readonly Note[]): Promise<void> {
    const [written, deleted] = [notes.filter(isWritten), notes.filter((note) => !isWritten(note))]
    if (written.length > 0)
      await this.all(
        `insert into minetree_note (name, value) values ${tuples(written, 2)} on duplicate key update value = values(value)`,
        written.flatMap(({ name, value }) => [Buffer.from(name), Buffer.from(value)]),
      )
    if (deleted.length > 0)
      await this.all(
        `delete from minetree_note where name in (${deleted.map(() => '?')})`,
        deleted.map(({ name }) => Buffer.from(name)),
      )
  }

  async replaceNote(name: string, { from, to }: { from: string | undefined; to: string }): Promise<boolean> {
    const values = [to, name].map((text) => Buffer.from(text))
    const changed =
      from === undefined
        ? await this.changed('insert ignore into minetree_note (value, name) values (?, ?)', values)
        : await this.changed('update minetree_note set value = ? where name = ? and value = ?', [
            ...values,
            Buffer.from(from),
          ])
    return changed > 0
  }

  async overwrite({ seq }: Pick<LogRow, 'seq'>, body: Uint8Array): Promise<void> {
    const [row] = await this.all('select chunks from minetree_log where seq = ?', [seq])
    if (row?.chunks == null) {
      await this.all('update minetree_log set body = ? where seq = ? and body is not null', [
        buffer(body),
        seq,
      ])
      return
    }
    for (const { owner, position, bytes, checksum } of chunksAt(row.chunks, body))
      await this.all('update minetree_chunk set bytes = ?, checksum = ? where owner = ? and position = ?', [
        ...[buffer(bytes), checksum, owner, position],
      ])
  }

  async complete(): Promise<void> {
    await this.all('update minetree_log_meta set name = ? where name = ?', [COPIED_FROM, COPY_OF])
  }

  async close(): Promise<void> {
    await this.options.close?.()
  }

  /** Rows with their bodies: inline ones are read in one statement, the others a few chunks at a time. */
  private async withBodies(rows: readonly Row[], onDamage?: RowsPage['onDamage']): Promise<LogRow[]> {
    const [first, last] = [rows[0], rows.at(-1)]
    if (first === undefined || last === undefined) return []
    const inline = await this.all(
      'select seq, body from minetree_log where seq between ? and ? and body is not null',
      [first.seq, last.seq],
    )
    const bodies = new Map(inline.map(({ seq, body }) => [seq, body as Uint8Array]))
    const chunks = await this.chunksOf(rows)
    return rows.map(({ seq, kind, fact_key: key, at, first, batch, length, chunks: owner }) => ({
      ...{ seq, kind, key, at, first, batch: toHex(batch) },
      body:
        owner === null
          ? bodies.get(seq)
          : bodyOf({ seq, kind, key }, { length, chunks: chunks.get(toHex(owner)) ?? [] }, onDamage),
    }))
  }

  private async chunksOf(rows: readonly Row[]): Promise<Map<string, Omit<Chunk, 'owner'>[]>> {
    const found = new Map<string, Omit<Chunk, 'owner'>[]>()
    const wanted = rows.flatMap(({ chunks, length }) => {
      if (chunks === null) return []
      found.set(toHex(chunks), [])
      return Array.from({ length: Math.ceil(length / CHUNK_BYTES) }, (_, position) => [chunks, position])
    })
    for (const some of grouped(wanted)) {
      const chunks = await this.all(
        `select owner, position, bytes, checksum from minetree_chunk where (owner, position) in (${tuples(some, 2)})`,
        some.flat(),
      )
      for (const { owner, ...chunk } of chunks) found.get(toHex(owner))?.push(chunk as Omit<Chunk, 'owner'>)
    }
    return found
  }

  private async deleteChunks(owners: readonly Uint8Array[]): Promise<void> {
    for (const some of grouped(owners, DISCARDED_AT_ONCE))
      await this.all(`delete from minetree_chunk where owner in (${some.map(() => '?')})`, some.map(buffer))
  }

  private async all(sql: string, values: unknown[]): Promise<Row[]> {
    return rowsIn(await this.ask(sql, values))
  }

  private async changed(sql: string, values: unknown[]): Promise<number> {
    return ((await this.ask(sql, values)) as [{ affectedRows: number }])[0].affectedRows
  }

  private async ask(sql: string, values: unknown[]): Promise<unknown> {
    return await asked(async () => await this.query(sql, values), this.options)
  }
}

/** Commits must be synced to disk: with any other value, the last second may be lost. */
async function warningOf(all: (sql: string) => Promise<Row[]>): Promise<string | undefined> {
  // Servers that only speak the protocol may lack this variable.
  const rows = await all('select @@innodb_flush_log_at_trx_commit as value').catch(() => [])
  const value = rows[0]?.value
  if (value === undefined || Number(value) === 1) return undefined
  return `innodb_flush_log_at_trx_commit of the database is ${value}: set it to 1, or acknowledged writes may be lost in a power failure`
}

const DISCARDED_AT_ONCE = 100

function isWritten(note: Note): note is { name: string; value: string } {
  return note.value !== undefined
}

function rowsIn(answer: unknown): Row[] {
  return (answer as [Row[]])[0]
}

function tuples(items: readonly unknown[], columns: number): string {
  const tuple = `(${Array.from({ length: columns }, () => '?')})`
  return items.map(() => tuple).join(', ')
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | undefined)?.code
}

/** Drivers would write any other byte array as a list of numbers. */
function buffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
