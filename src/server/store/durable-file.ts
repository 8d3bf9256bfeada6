import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { Mutex } from 'async-mutex'
import { lockFile } from '../../../backend/src/facts/folder.js'

/** Waiting for SQLite blocks the process, so a holder in the same process would never finish. */
const inThisProcess = new Mutex()
/** How long a command waits for another, in milliseconds. */
const PATIENCE = 10_000

/**
 * Runs work while no other process runs any for the same file. It takes the lock of {@link lockFile} on a file beside it, which
 * also works between containers that share a volume.
 *
 * @throws FolderInUseError if another process holds the lock for ten seconds; errors of SQLite if the lock file cannot be created.
 */
export async function withFileLock<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  return await inThisProcess.runExclusive(async () => {
    const unlock = lockFile(dirname(file), `${basename(file)}.lock`, PATIENCE)
    try {
      return await work()
    } finally {
      unlock()
    }
  })
}

/**
 * Writes a small file that only its owner can read, atomically and durably: readers see the old or the new content, and it
 * survives a power loss. A failure leaves nothing behind.
 *
 * @param written.part The temporary file, in the same folder.
 * @param written.flag How to open `part`: `wx` if it must not exist yet.
 */
export async function writeDurably(written: {
  file: string
  part: string
  content: string | Uint8Array
  flag: 'w' | 'wx'
}): Promise<void> {
  const { file, part, content, flag } = written
  try {
    const handle = await open(part, flag, 0o600)
    try {
      await handle.writeFile(content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true }).catch(() => {})
    throw error
  }
  await syncFolder(dirname(resolve(file)))
}

/** Makes the name of a new file survive a power loss. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
