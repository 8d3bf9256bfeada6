import { open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Mutex } from 'async-mutex'
import { Sql } from '../../../backend/src/facts/connection.js'

const inThisProcess = new Mutex()

/**
 * Runs work that no other process runs at the same time for the same file. The lock is that of SQLite on a file beside it: it ends
 * with the process that holds it, and holds between containers that share a volume.
 *
 * @throws Error if it cannot be had within ten seconds, or the file cannot be created.
 */
export async function withFileLock<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  return await inThisProcess.runExclusive(async () => {
    const lock = new Sql(`${file}.lock`)
    try {
      lock.exec('pragma busy_timeout = 10000; begin exclusive')
      return await work()
    } finally {
      lock.close()
    }
  })
}

/**
 * Writes a small file that only its owner can read, atomically and durably: readers see the old or the new content, and it
 * survives a power loss. A failure leaves nothing behind.
 *
 * @param written.part The temporary file, in the same folder.
 * @param written.flag Of `part`: `wx` if it must not exist yet.
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
