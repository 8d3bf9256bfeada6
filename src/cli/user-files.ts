import { constants, createReadStream, fstat, open } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Socket } from 'node:net'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { withFileLock, writeDurably } from '../server/store/durable-file.js'

/** The variables of the XDG Base Directory Specification, and what stands for each below the home directory. */
const BASES = {
  XDG_CACHE_HOME: '.cache',
  XDG_CONFIG_HOME: '.config',
  XDG_DATA_HOME: '.local/share',
} as const

/** The folder of this program for a kind of files of the user, which may not exist. */
export function userFolder(env: Record<string, string | undefined>, base: keyof typeof BASES): string {
  const configured = env[base]
  // A relative path must be ignored: XDG Base Directory Specification, "Basics".
  const folder =
    configured !== undefined && isAbsolute(configured) ? configured : join(env.HOME || homedir(), BASES[base])
  return join(folder, 'minetree')
}

/** The longest secret that is read, in bytes. */
const MAX_SECRET_BYTES = 64 * 1024

/**
 * Reads a short text of a file, or of a pipe, such as what a password manager writes. A pipe is not read in a thread of Node's
 * pool: that would wait for a writer, and keep the process from ending.
 *
 * @throws Error of the system, or for more than 64 KiB; the reason of the signal.
 */
export async function readSecretFile(path: string, signal: AbortSignal): Promise<string> {
  // Windows does not have the flag.
  const fd = await promisify(open)(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  const isPipe = (await promisify(fstat)(fd)).isFIFO()
  const source = isPipe
    ? new Socket({ fd, readable: true, writable: false, signal })
    : createReadStream(path, { fd, signal })
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of source as AsyncIterable<Buffer>) {
      parts.push(part)
      bytes += part.length
      if (bytes > MAX_SECRET_BYTES) throw new Error(`it has more than ${MAX_SECRET_BYTES} bytes`)
    }
  } finally {
    source.destroy()
  }
  return Buffer.concat(parts).toString('utf8')
}

/**
 * Changes a JSON file of the user, which readers find with the old or the new content. Commands that do so at the same time lose
 * nothing.
 *
 * @param change The new content; it reads the old one.
 */
export async function changeUserJson(path: string, change: () => Promise<unknown>): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await withFileLock(path, async () => {
    const content = `${JSON.stringify(await change(), null, 2)}\n`
    await writeDurably({ file: path, part: `${path}.part`, content, flag: 'w' })
  })
}
