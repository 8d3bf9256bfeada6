import { constants, createReadStream, fstat, open } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import type { z } from 'zod'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { readJson } from '../client/bounded-fetch.js'
import { withFileLock, writeDurably } from '../server/store/durable-file.js'
import { CommandError, usageError } from './command.js'

/** The variables of the XDG Base Directory Specification, and their defaults below the home directory. */
const BASES = {
  XDG_CACHE_HOME: '.cache',
  XDG_CONFIG_HOME: '.config',
  XDG_DATA_HOME: '.local/share',
} as const

/** This program's folder for one kind of user files; it may not exist. */
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
 * Reads a short text from a file, or from a pipe, such as the output of a password manager. A pipe is not read in Node's thread
 * pool, which would wait for a writer and keep the process from ending.
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

/** The result of reading or writing a path. @throws CommandError (`usage`) if that fails. */
export async function readable<Result>(
  doing: Promise<Result>,
  path: string,
  what: 'read' | 'write' = 'read',
): Promise<Result> {
  try {
    return await doing
  } catch (cause) {
    if (cause instanceof CommandError) throw cause
    throw usageError(`cannot ${what} ${path}: ${messageOf(cause)}`, cause)
  }
}

/** A JSON file of the user. Readers find the old or the new content, and concurrent changes lose nothing. */
export class UserJson<Content extends object> {
  /** @param advice What to do if it is damaged. */
  constructor(
    readonly path: string,
    private readonly schema: z.ZodType<Content>,
    private readonly advice = 'correct it or remove it',
  ) {}

  /** Its content; undefined if there is no such file. @throws CommandError (`usage`) if it cannot be read, or is damaged. */
  async read(): Promise<Content | undefined> {
    const reading = readFile(this.path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    const text = await readable(reading, this.path)
    if (text === undefined) return undefined
    const { data } = this.schema.safeParse(readJson(text))
    if (data !== undefined) return data
    throw usageError(`${this.path} is damaged: ${this.advice}`)
  }

  /** @param change Makes the new content. @throws CommandError (`usage`) if it cannot be read or written. */
  async change(change: (held: Content | undefined) => object): Promise<void> {
    await readable(this.replace(change), this.path, 'write')
  }

  private async replace(change: (held: Content | undefined) => object): Promise<void> {
    const { path } = this
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await withFileLock(path, async () => {
      const content = `${JSON.stringify(change(await this.read()), null, 2)}\n`
      await writeDurably({ file: path, part: `${path}.part`, content, flag: 'w' })
    })
  }
}
