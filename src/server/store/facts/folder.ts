import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { lockFile, makeFolder } from '../../../../backend/src/facts/folder.js'
import { assertVersion } from '../../../../backend/src/facts/log-file.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { SCHEMA } from '../../../../backend/src/index/schema.js'
import { GeneralError } from '../../../../backend/src/protocol/coded-error.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { reasonOf, reasonWithAdvice, StartError } from '../../config/errors.js'
import { FolderLog } from './folder-log.js'

/**
 * Reads a log while its service runs.
 *
 * @throws GeneralError if there is no log in the folder, or its file is damaged; StartError if it cannot be opened.
 */
export async function readFolder<Result>(
  folder: string,
  read: (log: FolderLog) => Promise<Result>,
): Promise<Result> {
  return await withFile(folder, async (sql) => {
    sql.exec('pragma query_only = on')
    return await read(new FolderLog(sql, { isRead: true }))
  })
}

/**
 * Changes a log that no service has open, in one commit. The file is rewritten if something was removed, so that no free space holds
 * it.
 *
 * @param prepare Called first, once no other process can open the store.
 * @throws GeneralError if there is no log in the folder, or its file is damaged; StartError if a service has it open, or it cannot be
 * opened.
 */
export async function changeFolder<Result>(
  folder: string,
  change: (log: FolderLog) => Promise<Result>,
  prepare = async (): Promise<void> => {},
): Promise<Result> {
  requireLog(folder)
  const unlock = await lockStore(folder)
  try {
    await prepare()
    return await withFile(folder, async (sql) => {
      sql.exec('pragma synchronous = full; begin immediate;')
      const log = new FolderLog(sql)
      const result = await change(log)
      sql.exec('commit')
      if (log.isCleaned) clean(sql)
      return result
    })
  } finally {
    unlock()
  }
}

/** The file of a store from before November 2026, which was made of tables. */
export const OLD_STORE = 'minetree.sqlite'

/**
 * Creates the folder of a store if needed, and locks it until the returned function is called.
 *
 * @throws as `makeFolder` and `lockFile`; Error if it holds a store of an earlier kind.
 */
export function lockFolder(folder: string): () => void {
  makeFolder(folder)
  if (existsSync(join(folder, OLD_STORE)))
    throw new Error(
      'it holds a store of an earlier kind, which is not read: choose another DATA_DIR, and import or follow again',
    )
  return lockFile(folder)
}

/** Locks a store as its service does. @throws StartError if another process has it open, or the folder cannot be used. */
export async function lockStore(folder: string): Promise<() => void> {
  try {
    return lockFolder(folder)
  } catch (error) {
    throw notOpened(folder, error)
  }
}

/** Removes all indexes of a store that no process has open, including unfinished ones: the next start derives one. */
export function removeIndexes(folder: string): void {
  for (const name of readdirSync(folder)) if (/^index-\d+\.db/.test(name)) rmSync(join(folder, name))
}

/** The damage of an index file, which then has to be removed and derived again; undefined if there is none, or no file. */
export function damageOf(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  let sql: Sql | undefined
  try {
    sql = new Sql(file)
    const names = new Set(sql.all('select name from sqlite_master').map(({ name }) => name))
    const missing = INDEX_TABLES.filter((name) => !names.has(name))
    return names.size > 0 && missing.length > 0 ? `it lacks ${missing.join(', ')}` : undefined
  } catch (error) {
    if (isDamage(error)) return reasonOf(error)
    throw error
  } finally {
    sql?.close()
  }
}

/** The tables of an index, and their SQL indexes. */
const INDEX_TABLES = [...SCHEMA.matchAll(/create (?:unique )?(?:table|index) (\w+)/g)].map(
  ([, name = '']) => name,
)

/** @throws GeneralError if there is no log in the folder; StartError if this user may not look for one. */
export function requireLog(folder: string): void {
  if (!hasLog(folder)) throw new GeneralError('NOT_FOUND', `there is no log of facts in ${folder}`)
}

/** @throws StartError if this user may not look for one. */
export function hasLog(folder: string): boolean {
  try {
    return statSync(storeFiles(folder).log, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    throw notOpened(folder, error)
  }
}

async function withFile<Result>(folder: string, work: (sql: Sql) => Promise<Result>): Promise<Result> {
  requireLog(folder)
  const { log: filename } = storeFiles(folder)
  let sql: Sql | undefined
  try {
    sql = new Sql(filename)
    assertVersion(sql)
    return await work(sql)
  } catch (error) {
    if (isDamage(error))
      throw new GeneralError('FAILED', `${filename} is damaged, ${reasonOf(error)}: ${RESTORE}`, {
        cause: error,
      })
    if (sql === undefined || isUnusable(error)) throw notOpened(folder, error)
    throw error
  } finally {
    sql?.close()
  }
}

/** What to do about a damaged log. */
export const RESTORE = 'minetree check lists the damage; restore a copy, or sync an empty store again'

/** Rewrites the file: otherwise deleted rows stay in free pages, and in the free space of others. */
function clean(sql: Sql): void {
  try {
    sql.exec('vacuum')
    if (sql.get('pragma wal_checkpoint(truncate)')?.busy !== 0) throw new Error('another process reads it')
  } catch (error) {
    throw new GeneralError(
      'FAILED',
      `the bytes are overwritten, but free space of ${sql.filename} may still hold them, ${reasonOf(error)}: run it again once the disk has room for a second copy of it`,
      { cause: error },
    )
  }
}

export function notOpened(folder: string, error: unknown): StartError {
  const isClosed = (error as { code?: unknown }).code === 'SQLITE_CANTOPEN'
  const reason = isClosed ? 'SQLite cannot open it: is the folder writable?' : reasonWithAdvice(error)
  return new StartError(`cannot open the store in ${folder}: ${reason}`, { cause: error })
}

/** Whether SQLite could not open a file, or cannot write to it or beside it (1544, for which libsql has no name). */
function isUnusable(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return /^SQLITE_(?:CANTOPEN|READONLY|PERM|BUSY|FULL|IOERR)|_1544$/.test(String(code))
}
