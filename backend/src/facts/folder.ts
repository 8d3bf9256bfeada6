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
 * Creates a folder and its missing parents. `mkdir` with `recursive` would loop forever where none can be created, as in `/proc`.
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
 * Locks a folder: one process writes at a time, as it checks for conflicting spends before it writes. The lock is an exclusive
 * one of SQLite on a separate file, and ends with its process, however that ends.
 *
 * @param patience Milliseconds to wait for another process, with this thread blocked.
 * @returns A function that releases the lock.
 * @throws FolderInUseError, or what SQLite throws.
 */
export function lockFile(folder: string, name = 'minetree.lock', patience = 0): () => void {
  const connection = new Sql(join(folder, name), patience)
  try {
    connection.exec('begin exclusive')
  } catch (cause) {
    connection.close()
    throw (cause as { code?: unknown }).code === 'SQLITE_BUSY' ? new FolderInUseError(cause) : cause
  }
  return () => connection.close()
}

/** Removes a SQLite file that no process has open, with its `-wal` and `-shm`. */
export function removeDatabase(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
}
