import { DamagedError } from '../graph/errors.js'
import { sha256 } from '../graph/native-hash.js'
import { CHUNK_BYTES } from '../graph/records.js'
import { concatBytes, joinBytes, toHex } from '../protocol/bytes.js'
import type { Row, Sql } from './connection.js'
import type { Fact, FactKind, NewFact } from './log.js'
import { chunksAt } from './shared-log.js'

/** A log in SQLite. Facts are inserted within the caller's transaction. */
export class LocalLog {
  private readonly log: string
  private readonly chunks: string
  private lastChunk: { name: string; bytes: Uint8Array } | undefined

  /** @param schema The name under which the log's file is attached to the connection. */
  constructor(
    private readonly sql: Sql,
    private readonly schema = 'main',
  ) {
    this.log = `${schema}.log`
    this.chunks = `${schema}.chunk`
  }

  /** Random: every log has its own, also one restored from a backup. */
  get id(): string {
    const row = this.sql.get(`select value from ${this.schema}.log_meta where name = 'id'`)
    if (row === undefined) throw new Error(`${this.sql.filename} is not a minetree log`)
    return String(row.value)
  }

  /** The last place; 0 if there is no fact. */
  get last(): number {
    return Number(this.sql.get(`select max(seq) as seq from ${this.log}`)?.seq ?? 0)
  }

  /** @returns The inserted fact; undefined if the log already has one of this kind and key. */
  insert({ kind, key, body }: NewFact, at = Date.now()): Fact | undefined {
    const isLong = body.length > CHUNK_BYTES
    if (isLong) {
      if (this.has(kind, key)) return undefined
      // The row comes last: a reader that finds it finds the bytes.
      for (const { position, bytes, checksum } of chunksAt(key, body))
        this.sql.run(
          `insert into ${this.chunks} values (?, ?, ?, ?, ?)`,
          ...[kind, key, position, bytes, checksum],
        )
    }
    const seq = this.sql.insert(
      `insert into ${this.log} (kind, key, at, length, body) values (?, ?, ?, ?, ?) on conflict (kind, key) do nothing`,
      ...[kind, key, at, body.length, isLong ? null : body],
    )
    return seq === undefined ? undefined : { seq, kind, key, at, body }
  }

  has(kind: FactKind, key: Uint8Array): boolean {
    return this.sql.get(`select 1 from ${this.log} where kind = ? and key = ?`, kind, key) !== undefined
  }

  /** The body of a fact, null if it is in chunks, and its length in bytes; undefined if there is no such fact. */
  outline(kind: FactKind, key: Uint8Array): { length: number; body: Uint8Array | null } | undefined {
    return this.sql.get(`select length, body from ${this.log} where kind = ? and key = ?`, kind, key) as never
  }

  get(kind: FactKind, key: Uint8Array): Fact | undefined {
    const row = this.sql.get(`select * from ${this.log} where kind = ? and key = ?`, kind, key)
    return row && this.factOf(row)
  }

  /** The fact of a kind with the highest key between two keys, inclusive. */
  lastBetween(kind: FactKind, from: Uint8Array, to: Uint8Array): Fact | undefined {
    const row = this.sql.get(
      `select * from ${this.log} where kind = ? and key between ? and ? order by key desc limit 1`,
      ...[kind, from, to],
    )
    return row && this.factOf(row)
  }

  /** Kind and key of the fact at a place; undefined if there is none. */
  keyAt(seq: number): Pick<Fact, 'kind' | 'key'> | undefined {
    const row = this.sql.get(`select kind, key from ${this.log} where seq = ?`, seq)
    return row && { kind: row.kind, key: row.key }
  }

  /**
   * The facts after a place, in order; all of them without a page.
   *
   * @param page.maxBytes Stops before the bodies exceed this total, but returns at least one fact if there is any.
   */
  after(seq: number, page?: { limit: number; maxBytes: number }): Fact[] {
    const to = page === undefined ? Number.MAX_SAFE_INTEGER : this.endOf(seq, page)
    if (to === undefined) return []
    const rows = this.sql.all(`select * from ${this.log} where seq > ? and seq <= ? order by seq`, seq, to)
    return rows.map((row) => this.factOf(row))
  }

  /** The last place of a page after a place; undefined if there is no fact. */
  private endOf(seq: number, { limit, maxBytes }: { limit: number; maxBytes: number }): number | undefined {
    const places = this.sql.all(
      `select seq, length from ${this.log} where seq > ? order by seq limit ?`,
      seq,
      limit,
    )
    let bytes = 0
    const end = places.find(({ length }, index) => {
      bytes += length
      return index > 0 && bytes > maxBytes
    })
    return end === undefined ? places.at(-1)?.seq : end.seq - 1
  }

  /**
   * Part of a body, shorter if the body ends earlier; undefined if there is no such fact. Reads only the chunks that hold it.
   *
   * @throws DamagedError if a chunk is missing or corrupt.
   */
  slice(
    kind: FactKind,
    key: Uint8Array,
    { from, length }: { from: number; length: number },
  ): Uint8Array | undefined {
    const row = this.sql.get(
      `select length, substr(body, ?, ?) as bytes from ${this.log} where kind = ? and key = ?`,
      ...[from + 1, length, kind, key],
    )
    if (row === undefined) return undefined
    if (row.bytes !== null) return row.bytes
    const end = Math.min(from + length, row.length)
    const found: Uint8Array[] = []
    for (let at = from; at < end; ) {
      const position = Math.floor(at / CHUNK_BYTES)
      const chunk = this.chunk(kind, key, position)
      const start = position * CHUNK_BYTES
      found.push(chunk.subarray(at - start, end - start))
      at = start + CHUNK_BYTES
    }
    return found.length === 1 ? found[0] : joinBytes(found)
  }

  /** Overwrites a body with bytes of the same length. Facts are never changed in any other way. */
  overwrite(kind: FactKind, key: Uint8Array, body: Uint8Array): void {
    const { sql } = this
    this.lastChunk = undefined
    const of = [kind, key] as const
    sql.run(`update ${this.log} set body = ? where kind = ? and key = ? and body is not null`, body, ...of)
    for (const { position, bytes, checksum } of chunksAt(key, body))
      sql.run(
        `update ${this.chunks} set bytes = ?, checksum = ? where kind = ? and key = ? and position = ?`,
        ...[bytes, checksum, ...of, position],
      )
  }

  private factOf({ seq, kind, key, at, length, body }: Row): Fact {
    if (body !== null) return { seq, kind, key, at, body }
    const chunks: Uint8Array[] = []
    for (let position = 0; position * CHUNK_BYTES < length; position++)
      chunks.push(this.chunk(kind, key, position))
    return { seq, kind, key, at, body: concatBytes(...chunks) }
  }

  /** Keeps the last chunk: a reader that pages through a body with bounds of its own needs most chunks twice. */
  private chunk(kind: FactKind, key: Uint8Array, position: number): Uint8Array {
    const name = `${kind} ${toHex(key)} ${position}`
    if (this.lastChunk?.name === name) return this.lastChunk.bytes
    this.lastChunk = undefined
    const row = this.sql.get(
      `select bytes, checksum from ${this.chunks} where kind = ? and key = ? and position = ?`,
      ...[kind, key, position],
    )
    if (row === undefined || !sha256(row.bytes).equals(row.checksum))
      throw new DamagedError(
        toHex(key),
        row === undefined ? `chunk ${position} is missing` : `chunk ${position}`,
      )
    this.lastChunk = { name, bytes: row.bytes }
    return row.bytes
  }
}
