import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { access, constants, mkdir, rename } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Row, Sql, type SqlValue } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { isPurged, latestOf, nextOf, register } from '../../../../backend/src/facts/registers.js'
import { DamagedError } from '../../../../backend/src/graph/errors.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { reasonOf } from '../../config/errors.js'
import { BackupError } from '../backup/backup-tables.js'
import { syncFolder } from '../durable-file.js'
import { OLD_STORE } from '../folder-lock.js'
import { readLog } from './folder.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

export interface CopyOptions {
  from: string
  to: string
  signal: AbortSignal
  onProgress: (copied: { facts: number; share: number }) => void
}

/** Facts of one transaction of the copy: an interrupted one goes on behind the last. */
const PAGE = { limit: 1000, maxBytes: 16 * 1024 * 1024 }
/** Tables beside the log, which are read in pages by their row number where they have one. */
const ROWS_A_PAGE = 100
/** In the copy, until it is complete: the log that it is made from. */
const COPIED_FROM = 'copied from'

/**
 * Copies a log with its state and its registers, beside a running service: a snapshot of one moment. Each fact is verified on the
 * way. The copy has an id of its own, so that a gateway derives its index again, and higher scores than the log has by now: peers
 * may have passed those that it gives from here on. An interrupted copy is continued by the same
 * command, and begun again if something was purged or pruned since.
 *
 * @throws BackupError if there is no log, or the target holds one, or is the store itself; what {@link readLog} throws; the reason of the signal.
 */
export async function copyLog({ from, to, ...options }: CopyOptions): Promise<{ facts: number; id: string }> {
  const { log: target } = storeFiles(to)
  if (resolve(to).startsWith(join(resolve(from), sep)))
    throw new BackupError(`${to} is within the store itself: choose a folder elsewhere`)
  if (existsSync(target) || existsSync(join(to, OLD_STORE)))
    throw new BackupError(`${to} holds a store already: choose an empty folder`)
  return await readLog(from, async (log, source) => {
    await makeWritable(to)
    const part = join(to, 'log.db.part')
    removeOutdated(part, source)
    const sql = new Sql(part)
    try {
      // No other process reads the part, and a copy that ends with the power begins again where it was last synced.
      sql.exec('pragma journal_mode = delete; pragma synchronous = full;')
      const copied = await copyInto(sql, { log, source, ...options })
      sql.close()
      await rename(part, target)
      await syncFolder(to)
      return copied
    } finally {
      sql.close()
    }
  })
}

async function makeWritable(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true })
    await access(folder, constants.W_OK)
  } catch (error) {
    throw new BackupError(`cannot write to ${folder}: ${reasonOf(error)}`, { cause: error })
  }
}

interface Copying extends Pick<CopyOptions, 'signal' | 'onProgress'> {
  log: LocalLog
  source: Sql
}

async function copyInto(
  sql: Sql,
  { log, source, signal, onProgress }: Copying,
): Promise<{ facts: number; id: string }> {
  const { id: sourceId, last } = log
  begin(sql, source, sourceId)
  const copy = new LocalLog(sql)
  const end = source.get('select count(*) as count from log')?.count ?? 0
  let facts = 0
  for (let place = copy.last; place < last; ) {
    signal.throwIfAborted()
    const page = log.after(place, PAGE)
    if (page.length === 0) break
    sql.exec('begin')
    for (const fact of page) {
      if (!isSound(fact) && !isPurged(log, fact.key))
        throw new DamagedError(toHex(fact.key), FACT_NAMES[fact.kind])
      const { seq, kind, key, at } = fact
      const row = source.get('select length, body from log where seq = ?', seq)
      sql.run('insert into log values (?, ?, ?, ?, ?, ?)', seq, kind, key, at, row?.length, row?.body ?? null)
      for (const chunk of row?.body === null ? chunksOf(source, kind, key) : [])
        insertRow(sql, 'chunk', chunk)
    }
    sql.exec('commit')
    place = page.at(-1)?.seq ?? last
    facts += page.length
    onProgress({ facts, share: facts / end })
    await setImmediate()
  }
  sql.exec('begin')
  for (const table of tablesOf(source)) if (!LOG_TABLES.has(table)) copyRows(sql, source, table)
  const id = randomBytes(16).toString('hex')
  sql.run("update log_meta set value = ? where name = 'id'", id)
  sql.run('delete from log_meta where name = ?', COPIED_FROM)
  raiseScores(copy)
  sql.exec('commit')
  return { facts: end, id }
}

/** Gives the next facts higher scores than any that the log, or one that it was copied from, can have given by now. */
export function raiseScores(log: LocalLog): void {
  const subject = register.setting('base')
  // A fact takes a millisecond of them, one with many outputs a few more.
  const given = Number(latestOf(log, subject)?.value ?? 0) + log.last + MARGIN
  const raised = nextOf(log, subject, String(Math.max(given, Date.now())))
  if (raised !== undefined) log.insert(raised)
}

/** In milliseconds. */
const MARGIN = 10_000
const LOG_TABLES = new Set(['log', 'chunk', 'log_meta'])

/** Removes a part that was made before something was removed from its source for good. */
function removeOutdated(part: string, source: Sql): void {
  if (!existsSync(part)) return
  const sql = new Sql(part)
  try {
    const isBegun = sql.get("select 1 as one from sqlite_master where name = 'log_meta'") !== undefined
    if (!isBegun || cleanedAt(sql) === cleanedAt(source)) return
  } finally {
    sql.close()
  }
  rmSync(part)
}

/** Another value after each `purge` and `prune`. */
function cleanedAt(sql: Sql): unknown {
  return sql.get("select value from log_meta where name = 'cleaned'")?.value
}

/** Makes the tables of the source, unless an interrupted copy of the same log has made them. */
function begin(sql: Sql, source: Sql, sourceId: string): void {
  const begun = sql.get("select 1 from sqlite_master where name = 'log_meta'")
  if (begun !== undefined) {
    const from = sql.get('select value from log_meta where name = ?', COPIED_FROM)?.value
    if (from !== sourceId) throw new BackupError('the folder holds part of a copy of another log: empty it')
    return
  }
  sql.exec('begin')
  for (const { sql: statement } of source.all(
    "select sql from sqlite_master where sql is not null and name not like 'sqlite!_%' escape '!' order by type = 'index'",
  ))
    sql.exec(statement)
  copyRows(sql, source, 'log_meta')
  sql.run('insert into log_meta values (?, ?)', COPIED_FROM, sourceId)
  sql.exec('commit')
}

function tablesOf(sql: Sql): string[] {
  return sql
    .all("select name from sqlite_master where type = 'table' and name not like 'sqlite!_%' escape '!'")
    .map(({ name }) => String(name))
}

function copyRows(sql: Sql, source: Sql, table: string): void {
  const isNumbered = source.get('select wr from pragma_table_list where name = ?', table)?.wr === 0
  if (!isNumbered) {
    for (const row of source.all(`select * from ${table}`)) insertRow(sql, table, row)
    return
  }
  for (let last = 0; ; ) {
    const rows = source.all(
      `select rowid as row_number, * from ${table} where rowid > ? order by rowid limit ${ROWS_A_PAGE}`,
      last,
    )
    for (const { row_number, ...row } of rows) {
      insertRow(sql, table, row)
      last = row_number
    }
    if (rows.length < ROWS_A_PAGE) return
  }
}

function chunksOf(source: Sql, kind: number, key: Uint8Array): Row[] {
  return source.all('select * from chunk where kind = ? and key = ? order by position', kind, key)
}

function insertRow(sql: Sql, table: string, row: Row): void {
  const columns = Object.keys(row)
  const values = Object.values(row) as SqlValue[]
  sql.run(`insert into ${table} (${columns}) values (${columns.map(() => '?')})`, ...values)
}
