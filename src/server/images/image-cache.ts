import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'

/** The disk space of a small file, in bytes. */
const BLOCK = 4096
/** The suffix of a file that is being written. */
const PART = '.part'

/** Files in their own folder, within a budget: the least recently used are removed first. */
export class ImageCache {
  private opened: Promise<void> | undefined
  private readonly files: LRUCache<string, number>

  constructor(
    private readonly folder: string,
    maxBytes: number,
  ) {
    this.files = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (bytes) => Math.max(1, Math.ceil(bytes / BLOCK)) * BLOCK,
      dispose: (_bytes, name, reason) => {
        if (reason === 'evict') void this.remove(name)
      },
    })
  }

  async get(name: string): Promise<Buffer | undefined> {
    await this.open()
    if (this.files.get(name) === undefined) return undefined
    try {
      return await readFile(join(this.folder, name))
    } catch {
      // The folder was emptied, for instance by `minetree purge`.
      this.files.delete(name)
      return undefined
    }
  }

  async set(name: string, content: Uint8Array): Promise<void> {
    await this.open()
    const file = join(this.folder, name)
    await mkdir(this.folder, { recursive: true })
    try {
      await writeFile(file + PART, content)
      await rename(file + PART, file)
    } catch (error) {
      // Remove the part that was written, which is not counted.
      await this.remove(name + PART)
      throw error
    }
    this.files.set(name, content.length)
    // The file alone exceeds the limit.
    if (!this.files.has(name)) await this.remove(name)
  }

  async delete(names: (name: string) => boolean): Promise<void> {
    await this.open()
    for (const name of [...this.files.keys()].filter(names)) {
      this.files.delete(name)
      await this.remove(name)
    }
  }

  /** Reads the files of an earlier process, oldest first. */
  private async open(): Promise<void> {
    this.opened ??= (async () => {
      const names = await readdir(this.folder).catch(() => [])
      const parts = names.filter((name) => name.endsWith(PART))
      for (const name of parts) await this.remove(name)
      const found = await Promise.all(
        names.map(async (name) => {
          // The file may be gone by now.
          const stats = await stat(join(this.folder, name)).catch(() => undefined)
          return stats === undefined ? [] : [{ name, size: stats.size, at: stats.mtimeMs }]
        }),
      )
      for (const { name, size } of found.flat().sort((one, other) => one.at - other.at))
        this.files.set(name, size)
    })()
    await this.opened
  }

  private async remove(name: string): Promise<void> {
    await rm(join(this.folder, name), { force: true }).catch(() => {})
  }
}
