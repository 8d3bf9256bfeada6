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

/** About the most bytes of submissions that are kept. */
const MAX_BYTES = 256 * 1024 * 1024
/** Room is made down to this part of it, as counting all of them takes long. */
const ROOM = 3 / 4

/**
 * Submissions and evictions that a host has seen and the log lacks, in a file of their own: they outlive the process, and need no
 * database. Over the limit, unverified submissions go first, oldest first.
 */
export class Spool {
  private readonly sql: Sql
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
    this.bytes = Number(this.sql.get(TOTAL)?.bytes ?? 0)
    // Free space may hold content that the operator has removed since.
    if (this.bytes === 0) this.sql.exec('vacuum; pragma wal_checkpoint(truncate)')
  }

  /** Keeps a submission as it came. Of several, the longest stays: each transaction in it is named by a hash. */
  see(txid: string, beef: Uint8Array): void {
    this.put('seen', txid, beef)
  }

  /** Keeps a BEEF that the engine has verified until it is recorded. */
  verify(txid: string, beef: Uint8Array): void {
    this.put('verified', txid, beef)
  }

  get(txid: string): Submission | undefined {
    if (this.done.has(txid)) return undefined
    const row = this.sql.get('select seen, verified from submission where txid = ?', txid)
    return row && { txid, seen: row.seen ?? undefined, verified: row.verified ?? undefined }
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

  private put(column: 'seen' | 'verified', txid: string, beef: Uint8Array): void {
    if (this.done.has(txid)) this.flush()
    const statement = `insert into submission (txid, ${column}) values (?, ?) on conflict (txid) do update
      set ${column} = excluded.${column} where ifnull(length(${column}), 0) < length(excluded.${column})`
    if (this.sql.run(statement, txid, beef) === 0) return
    this.bytes += beef.length
    if (this.bytes > this.maxBytes) this.makeRoom(txid)
  }

  private makeRoom(last: string): void {
    this.flush()
    this.bytes = Number(this.sql.get(TOTAL)?.bytes)
    while (this.bytes > this.maxBytes * ROOM) {
      const oldest = this.sql.get(OLDEST, last)
      if (oldest === undefined) break
      this.sql.run(DELETE, oldest.txid)
      this.bytes -= oldest.length
    }
  }
}

const DELETE = 'delete from submission where txid = ?'
const LENGTH = 'ifnull(length(seen), 0) + ifnull(length(verified), 0)'
const TOTAL = `select ifnull(sum(${LENGTH}), 0) as bytes from submission`
const OLDEST = `select txid, ${LENGTH} as length from submission where verified is null and txid <> ? order by place limit 1`
