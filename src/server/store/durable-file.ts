import { open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Writes a small file that its owner alone can read. Readers find what was there before or all of the new content, and once
 * this is done it survives a loss of power. What fails leaves nothing behind.
 *
 * @param written.part Where it is written before it gets its name; in the same folder.
 * @param written.flag Of `part`: `wx` where nothing may be there yet.
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

/** So that the name of a new file survives a power loss. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
