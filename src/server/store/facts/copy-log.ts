import { existsSync, rmSync } from 'node:fs'
import { access, constants, mkdir, rename } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Row, Sql, type SqlValue } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { reasonOf } from '../../config/errors.js'
import { syncFolder } from '../durable-file.js'
import { OLD_STORE } from '../folder-lock.js'
import {
  assertOwn,
  assertSound,
  type Copied,
  type CopyOptions,
  cleanedAt,
  endCopy,
  isBegun,
  markBegun,
  raiseScores,
} from './copied-log.js'
import { readLog } from './folder.js'
import { type DatabasePlace, logPlaceOf } from './log-place.js'
import { MaintenanceError } from './maintenance-error.js'

/** Facts of one transaction of the copy: an interrupted one goes on behind the last. */
const PAGE = { limit: 1000, maxBytes: 16 * 1024 * 1024 }
/** Tables beside the log, which are read in pages by their row number where they have one. */
const ROWS_A_PAGE = 100

/**
 * Copies a log with its state and its registers, beside running services: a snapshot of one moment. Each fact is verified on the
 * way. The copy has an id of its own, so that a gateway derives its index again, and higher scores than the log has by now: peers
 * may have passed those that it gives from here on. An interrupted copy is continued by the same
 * command, and begun again if something was purged or pruned since.
 *
 * @throws ConfigError for what is neither a folder nor the URL of a database; MaintenanceError if there is no log, or the target holds one,
 * or is the store itself; what {@link readLog} and `withSharedLog` throw; the reason of the signal.
 */
export async function copyLog({ from, to, ...options }: CopyOptions): Promise<Copied> {
  const [source, target] = [logPlaceOf(from), logPlaceOf(to)]
  if ('folder' in source && 'folder' in target)
    return await readLog(source.folder, async (log, sql) => {
      if (resolve(to).startsWith(join(resolve(from), sep)))
        throw new MaintenanceError(`${to} is within the store itself: choose a folder elsewhere`)
      assertOwn(source.folder, sql)
      const fill = (part: Sql): Promise<Copied> => copyInto(part, { log, source: sql, ...options })
      return await intoFolder(target.folder, fill, (part) => removeOutdated(part, sql))
    })
  const { fromDatabase, folderToDatabase, betweenDatabases } = await import('./copy-shared.js')
  if ('folder' in target && !('folder' in source))
    return await intoFolder(target.folder, (part) => fromDatabase(source, part, options))
  if ('folder' in source && !('folder' in target)) return await folderToDatabase(source, target, options)
  return await betweenDatabases(source as DatabasePlace, target as DatabasePlace, options)
}

/** Makes a log in a folder, which has none, in a file that is renamed once it is complete. */
async function intoFolder(
  folder: string,
  fill: (part: Sql) => Promise<Copied>,
  look: (part: string) => void = () => {},
): Promise<Copied> {
  const { log: target } = storeFiles(folder)
  if (existsSync(target) || existsSync(join(folder, OLD_STORE)))
    throw new MaintenanceError(`${folder} holds a store already: choose an empty folder`)
  await makeWritable(folder)
  const part = join(folder, 'log.db.part')
  look(part)
  const sql = new Sql(part)
  try {
    // No other process reads the part, and a copy that ends with the power begins again where it was last synced.
    sql.exec('pragma journal_mode = delete; pragma synchronous = full;')
    const copied = await fill(sql)
    sql.close()
    await rename(part, target)
    await syncFolder(folder)
    return copied
  } finally {
    sql.close()
  }
}

async function makeWritable(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true })
    await access(folder, constants.W_OK)
  } catch (error) {
    throw new MaintenanceError(`cannot write to ${folder}: ${reasonOf(error)}`, { cause: error })
  }
}

interface Copying extends Pick<CopyOptions, 'signal' | 'onProgress'> {
  log: LocalLog
  source: Sql
}

async function copyInto(sql: Sql, { log, source, signal, onProgress }: Copying): Promise<Copied> {
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
      assertSound(fact, log)
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
  raiseScores(copy)
  const id = endCopy(sql)
  sql.exec('commit')
  return { facts: end, id }
}

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

/** Makes the tables of the source, unless an interrupted copy of the same log has made them. */
function begin(sql: Sql, source: Sql, sourceId: string): void {
  if (isBegun(sql, sourceId)) return
  sql.exec('begin')
  for (const { sql: statement } of source.all(
    "select sql from sqlite_master where sql is not null and name not like 'sqlite!_%' escape '!' order by type = 'index'",
  ))
    sql.exec(statement)
  copyRows(sql, source, 'log_meta')
  markBegun(sql, sourceId)
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
