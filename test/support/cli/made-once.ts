import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

/** Beside what npm has installed: git ignores it, and a fresh install removes it. */
const CACHE = resolve(import.meta.dirname, '../../../node_modules/.cache')
/** How long a folder of another key is kept, in milliseconds. */
const A_DAY = 24 * 60 * 60 * 1000
/** How npm fails if there is no registry; anything else is a fault. */
const NO_REGISTRY = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH/

export interface MadeOnce {
  /** The folder in the cache for things of one kind. */
  kind: string
  /** What the result depends on. */
  key: string
  make(folder: string): Promise<void>
}

/**
 * A folder that takes a while to make and that many tests use: made once for as long as the key stays the same, also by several
 * processes. Nobody may write into it.
 */
export async function madeOnce({ kind, key, make }: MadeOnce): Promise<string> {
  const kept = join(CACHE, `minetree-${kind}`)
  const folder = join(kept, createHash('sha256').update(key).digest('hex').slice(0, 16))
  if (existsSync(folder)) return folder
  await mkdir(kept, { recursive: true })
  await removeOld(kept)
  const made = await mkdtemp(join(kept, 'making-'))
  try {
    await make(made)
    // A folder under its final name is complete.
    await rename(made, folder)
  } catch (error) {
    await rm(made, { recursive: true })
    // Another process was faster, with the same.
    if (!existsSync(folder)) throw error
  }
  return folder
}

/** A folder with what is installed in its `node_modules`, or why there is none. */
export type Installation = { folder: string } | { missing: string }

/** The same, for what npm installs; `make` throws what npm says. */
export async function installedOnce(options: MadeOnce): Promise<Installation> {
  try {
    return { folder: await madeOnce(options) }
  } catch (error) {
    if (NO_REGISTRY.test(String((error as { stderr?: unknown }).stderr)))
      return { missing: 'no registry to install from' }
    throw error
  }
}

async function removeOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const { mtimeMs } = await stat(path)
    if (Date.now() - mtimeMs > A_DAY) await rm(path, { recursive: true, force: true })
  }
}
