import { access, constants, mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'

/** The file of a store before November 2026, when it was made of tables. */
export const OLD_STORE = 'minetree.sqlite'

/**
 * Creates the folder of a store, unless it is there, and keeps other processes out until what it returns is called.
 *
 * @throws what the file system or SQLite throws if the folder cannot be used; Error if another process has it, or it holds a store
 * of an earlier kind.
 */
export async function lockFolder(folder: string): Promise<() => void> {
  await makeFolder(folder)
  if (await exists(join(folder, OLD_STORE)))
    throw new Error(
      'it holds a store of an earlier kind, which is not read: choose another DATA_DIR, and import or follow again',
    )
  return lockFile(folder)
}

/**
 * Creates a folder and its missing parents. Not by `mkdir` with `recursive`, which loops forever where a folder does not exist
 * and cannot be created, as in `/proc`.
 *
 * @throws what the file system throws if a folder cannot be created, or is not writable.
 */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (
      code === 'ENOENT' &&
      dirname(resolve(folder)) !== resolve(folder) &&
      !(await exists(dirname(folder)))
    ) {
      await makeFolder(dirname(folder))
      await mkdir(folder)
    } else if (code !== 'EEXIST') throw error
  }
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

/**
 * One process writes at a time, as it checks for conflicting spends before it writes. An exclusive SQLite lock on a separate
 * file keeps a second process out, and ends with the process that holds it, however that ends.
 */
export function lockFile(folder: string, name = 'minetree.lock'): () => void {
  const connection = new Sql(join(folder, name))
  try {
    connection.exec('pragma busy_timeout = 0; begin exclusive;')
  } catch (cause) {
    connection.close()
    if (!isBusy(cause)) throw cause
    throw new Error('another minetree process has it open', { cause })
  }
  return () => connection.close()
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY'
}
