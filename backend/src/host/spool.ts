import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sql } from '../facts/connection.js'
import type { Outpoint } from '../protocol/outpoint.js'

/** A submission that topic managers have seen. */
export interface Submission {
  txid: string
  /** As it came: nobody has verified it. */
  seen: Uint8Array | undefined
  /** As the engine passed it on after verifying it: to be recorded. */
  verified: Uint8Array | undefined
}

/** Checkpoints are synced to disk in the thread of the host, so there are few. */
const SCHEMA = `
pragma journal_mode = wal; pragma synchronous = normal; pragma wal_autocheckpoint = 4000;
create table if not exists submission (place integer primary key, txid text not null unique, seen blob, verified blob);
create table if not exists eviction (txid text not null, vout integer not null, primary key (txid, vout)) without rowid;`

/**
 * A BEEF above this size that topic managers have seen is a file, and its row has its length instead: SQLite takes ten times as
 * long to store it, and the host waits.
 */
const LARGE = 128 * 1024
/** The end of the name of a file that is being written. */
const UNFINISHED = '.new'

/** About the most bytes of submissions that are kept. */
const MAX_BYTES = 256 * 1024 * 1024
/** Room is made down to this part of it, as counting all of them takes long. */
const ROOM = 3 / 4

/**
 * Submissions and evictions that a host has seen and the log lacks, in files of their own: they outlive the process, and need no
 * database. Over the limit, unverified submissions go first, oldest first.
 */
export class Spool {
  private readonly sql: Sql
  private readonly folder: string
  /** The submissions whose BEEF is a file. */
  private readonly large: Set<string>
  /** An upper bound of the bytes that are there. */
  private bytes: number
  /** Submissions that the next flush deletes. */
  private readonly done = new Set<string>()

  constructor(
    folder: string,
    private readonly maxBytes = MAX_BYTES,
  ) {
    this.sql = new Sql(join(folder, 'spool.db'))
    this.sql.exec(SCHEMA)
    this.folder = join(folder, 'spool')
    mkdirSync(this.folder, { recursive: true })
    this.large = new Set(this.sql.all(ALL_LARGE).map(({ txid }) => txid))
    // An earlier process may have been killed before it stored the row of a file, or after it deleted that.
    for (const name of readdirSync(this.folder)) if (!this.large.has(name)) rmSync(this.pathOf(name))
    this.bytes = Number(this.sql.get(TOTAL)?.bytes ?? 0)
    // Free space may hold content that the operator has removed since.
    if (this.bytes === 0) this.sql.exec('vacuum; pragma wal_checkpoint(truncate)')
  }

  /** Keeps a submission as it came. Of several, the longest stays: each transaction in it is named by a hash. */
  see(txid: string, beef: Uint8Array): void {
    const isLarge = beef.length > LARGE
    if (isLarge) this.write(txid, beef)
    this.put('seen', { txid, value: isLarge ? beef.length : beef, length: beef.length })
  }

  /** Keeps a BEEF that the engine has verified until it is recorded. */
  verify(txid: string, beef: Uint8Array): void {
    this.put('verified', { txid, value: beef, length: beef.length })
  }

  get(txid: string): Submission | undefined {
    if (this.done.has(txid)) return undefined
    const row = this.sql.get('select seen, verified from submission where txid = ?', txid)
    if (row === undefined) return undefined
    const seen = typeof row.seen === 'number' ? this.read(txid, row.seen) : row.seen
    return { txid, seen: seen ?? undefined, verified: row.verified ?? undefined }
  }

  /** All of them, oldest first. */
  txids(): string[] {
    this.flush()
    return this.sql.all('select txid from submission order by place').map(({ txid }) => txid)
  }

  /** Takes effect with the next {@link flush}: if the process ends before, the submission is there again. */
  delete(txid: string): void {
    this.done.add(txid)
  }

  /** Makes pending deletions. */
  flush(): void {
    const { sql, done } = this
    if (done.size === 0) return
    sql.exec('begin immediate')
    try {
      for (const txid of done) sql.run(DELETE, txid)
      sql.exec('commit')
      for (const txid of done) this.removeFile(txid)
      done.clear()
    } finally {
      if (sql.inTransaction) sql.exec('rollback')
    }
  }

  evict({ txid, vout }: Outpoint): void {
    this.sql.run('insert into eviction values (?, ?) on conflict do nothing', txid, vout)
  }

  evictions(): Outpoint[] {
    return this.sql.all('select txid, vout from eviction').map(({ txid, vout }) => ({ txid, vout }))
  }

  forgetEviction({ txid, vout }: Outpoint): void {
    this.sql.run('delete from eviction where txid = ? and vout = ?', txid, vout)
  }

  close(): void {
    this.flush()
    this.sql.close()
  }

  private put(
    column: 'seen' | 'verified',
    { txid, value, length }: { txid: string; value: Uint8Array | number; length: number },
  ): void {
    if (this.done.has(txid)) this.flush()
    const statement = `insert into submission (txid, ${column}) values (?, ?) on conflict (txid) do update
      set ${column} = excluded.${column} where ${lengthOf(column)} < ?`
    if (this.sql.run(statement, txid, value, length) === 0) return
    this.bytes += length
    if (this.bytes > this.maxBytes) this.makeRoom(txid)
  }

  private write(txid: string, beef: Uint8Array): void {
    if (this.done.has(txid)) this.flush()
    const path = this.pathOf(txid)
    if (sizeOf(path) >= beef.length) return
    // Renamed, so that a file is never a part of a BEEF.
    writeFileSync(path + UNFINISHED, beef)
    renameSync(path + UNFINISHED, path)
    this.large.add(txid)
  }

  /** @returns Undefined if a loss of power has left less than the row says. */
  private read(txid: string, length: number): Uint8Array | undefined {
    const path = this.pathOf(txid)
    return sizeOf(path) < length ? undefined : readFileSync(path)
  }

  private pathOf(name: string): string {
    return join(this.folder, name)
  }

  private removeFile(txid: string): void {
    if (this.large.delete(txid)) rmSync(this.pathOf(txid), { force: true })
  }

  private makeRoom(last: string): void {
    this.flush()
    this.bytes = Number(this.sql.get(TOTAL)?.bytes)
    while (this.bytes > this.maxBytes * ROOM) {
      const oldest = this.sql.get(OLDEST, last)
      if (oldest === undefined) break
      this.sql.run(DELETE, oldest.txid)
      this.removeFile(oldest.txid)
      this.bytes -= oldest.length
    }
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

const lengthOf = (column: string): string =>
  `iif(typeof(${column}) = 'blob', length(${column}), ifnull(${column}, 0))`
const DELETE = 'delete from submission where txid = ?'
const LENGTH = `${lengthOf('seen')} + ${lengthOf('verified')}`
const TOTAL = `select ifnull(sum(${LENGTH}), 0) as bytes from submission`
const OLDEST = `select txid, ${LENGTH} as length from submission where verified is null and txid <> ? order by place limit 1`
const ALL_LARGE = "select txid from submission where typeof(seen) not in ('blob', 'null')"
