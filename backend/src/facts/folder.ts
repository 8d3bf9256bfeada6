import { accessSync, constants, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CodedError } from '../protocol/coded-error.js'
import { Sql } from './connection.js'

/** Another process has the folder of a store open. */
export class FolderInUseError extends CodedError {
  override readonly name = 'FolderInUseError'
  readonly code = 'FOLDER_IN_USE'

  constructor(cause: unknown) {
    super('another minetree process has it open', { cause })
  }
}

/**
 * Creates a folder and its missing parents. Not by `mkdir` with `recursive`, which loops forever where a folder does not exist
 * and cannot be created, as in `/proc`.
 *
 * @throws what the file system throws if a folder cannot be created, or is not writable.
 */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && dirname(resolve(folder)) !== resolve(folder) && !existsSync(dirname(folder))) {
      makeFolder(dirname(folder))
      mkdirSync(folder)
    } else if (code !== 'EEXIST' || !statSync(folder).isDirectory()) throw error
  }
  accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
}

/**
 * One process writes at a time, as it checks for conflicting spends before it writes. An exclusive SQLite lock on a separate
 * file keeps a second process out, and ends with the process that holds it, however that ends.
 *
 * @param patience Milliseconds to wait for another process, during which this one does nothing else.
 * @returns What ends the lock.
 * @throws FolderInUseError; what SQLite throws.
 */
export function lockFile(folder: string, name = 'minetree.lock', patience = 0): () => void {
  const connection = new Sql(join(folder, name))
  try {
    connection.exec(`pragma busy_timeout = ${patience}; begin exclusive;`)
  } catch (cause) {
    connection.close()
    throw (cause as { code?: unknown }).code === 'SQLITE_BUSY' ? new FolderInUseError(cause) : cause
  }
  return () => connection.close()
}

/** Removes a file of SQLite that no process has open, and what SQLite has beside it. */
export function removeDatabase(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
}
