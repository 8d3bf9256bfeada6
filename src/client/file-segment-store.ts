import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { SegmentStore } from './segment-store.js'

/** Valid keys; none of them leads out of the folder. */
const KEY = /^[a-z0-9_-]{1,120}\/[a-z0-9_-]{1,120}$/

/**
 * Keeps segments as small files below a folder, for Node. Each is replaced atomically, so several processes may share a
 * folder; the files are readable only by their owner.
 */
export class FileSegmentStore implements SegmentStore {
  private readonly folder: string

  constructor({ folder }: { folder: string }) {
    this.folder = folder
  }

  async get(key: string): Promise<string | undefined> {
    try {
      return await readFile(this.pathOf(key), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  async put(key: string, segment: string): Promise<void> {
    const path = this.pathOf(key)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const part = `${path}.${randomBytes(6).toString('hex')}.part`
    try {
      const file = await open(part, 'wx', 0o600)
      try {
        await file.writeFile(segment)
      } finally {
        await file.close()
      }
      await rename(part, path)
    } catch (error) {
      await rm(part, { force: true }).catch(() => {})
      throw error
    }
  }

  private pathOf(key: string): string {
    if (!KEY.test(key)) throw new RangeError(`not the key of a segment: ${JSON.stringify(key.slice(0, 100))}`)
    return join(this.folder, key)
  }
}
