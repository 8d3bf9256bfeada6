import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { writeDurably } from '../server/store/durable-file.js'

/** The variables of the XDG Base Directory Specification, and what stands for each below the home directory. */
const BASES = { XDG_CACHE_HOME: '.cache', XDG_CONFIG_HOME: '.config' } as const

/** The folder of this program for a kind of files of the user, which may not exist. */
export function userFolder(env: Record<string, string | undefined>, base: keyof typeof BASES): string {
  const configured = env[base]
  // A relative path must be ignored: XDG Base Directory Specification, "Basics".
  const folder =
    configured !== undefined && isAbsolute(configured) ? configured : join(env.HOME || homedir(), BASES[base])
  return join(folder, 'minetree')
}

/** Writes a value as JSON to a file of the user, which readers find with the old or the new content. */
export async function writeUserJson(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const part = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.part`
  await writeDurably({ file: path, part, content: `${JSON.stringify(value, null, 2)}\n`, flag: 'wx' })
}
