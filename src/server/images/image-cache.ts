import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'

/** What a small file takes of a disk, in bytes. */
const BLOCK = 4096
/** The end of the name of a file that is being written. */
const PART = '.part'

/** Files in a folder of their own, within a budget: those least recently used are removed first. */
export class ImageCache {
  private opened: Promise<void> | undefined
  private readonly files: LRUCache<string, number>

  /** @param maxBytes That all files take together. */
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
      // Somebody has emptied the folder, as `minetree purge` does.
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
      // What there was room for counts nowhere.
      await this.remove(name + PART)
      throw error
    }
    this.files.set(name, content.length)
    // Longer than all may be together.
    if (!this.files.has(name)) await this.remove(name)
  }

  async delete(names: (name: string) => boolean): Promise<void> {
    await this.open()
    for (const name of [...this.files.keys()].filter(names)) {
      this.files.delete(name)
      await this.remove(name)
    }
  }

  /** Reads what an earlier process has left, oldest first. */
  private async open(): Promise<void> {
    this.opened ??= (async () => {
      const found: { name: string; size: number; mtimeMs: number }[] = []
      for (const name of await readdir(this.folder).catch(() => [])) {
        if (name.endsWith(PART)) await this.remove(name)
        // It may be gone by now.
        else
          found.push(
            ...(await stat(join(this.folder, name)).then(
              ({ size, mtimeMs }) => [{ name, size, mtimeMs }],
              () => [],
            )),
          )
      }
      found.sort((one, other) => one.mtimeMs - other.mtimeMs)
      for (const { name, size } of found) this.files.set(name, size)
    })()
    await this.opened
  }

  private async remove(name: string): Promise<void> {
    await rm(join(this.folder, name), { force: true }).catch(() => {})
  }
}
