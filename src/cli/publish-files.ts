import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { FolderEntry } from '../publish/folder.js'
import { plainBytes } from '../server/plain-bytes.js'
import { CommandError } from './command-error.js'

/** More than any server takes in one submission (`MAX_BODY_BYTES`), and about what is held in memory at once. */
export const MAX_TRANSACTION_BYTES = 1024 ** 3

/** What stands at a path, through symbolic links, before any of it is read; sizes are in bytes. */
export type Found =
  | { kind: 'file'; name: string; path: string; size: number }
  | { kind: 'folder'; name: string; path: string; entries: Found[] }

/**
 * Looks what stands at a path and below it.
 *
 * @param above The folders that it was come to through, as they are without symbolic links.
 * @throws CommandError where something cannot be read, is neither file nor folder, or leads back into itself.
 */
export async function findAt(path: string, name: string, above: readonly string[] = []): Promise<Found> {
  const stats = await readable(stat(path), path)
  if (stats.isFile()) return { kind: 'file', name, path, size: stats.size }
  if (!stats.isDirectory())
    throw new CommandError(`cannot publish ${path}: it is neither a file nor a folder`, { exit: 'usage' })
  const real = await readable(realpath(path), path)
  if (above.includes(real))
    throw new CommandError(`cannot publish ${path}: it leads back to ${real}`, { exit: 'usage' })
  const entries: Found[] = []
  for (const entry of await readable(readdir(path), path)) {
    entries.push(await findAt(join(path, entry), entry, [...above, real]))
  }
  return { kind: 'folder', name, path, entries }
}

/**
 * Reads a file, or all files of a folder, into memory.
 *
 * @throws CommandError where that is more than one transaction can have, or one cannot be read.
 */
export async function readWhole(found: Found): Promise<FolderEntry> {
  const size = sizeOf(found)
  if (size > MAX_TRANSACTION_BYTES) {
    const limit = `one transaction has room for ${MAX_TRANSACTION_BYTES}`
    throw new CommandError(`cannot publish ${found.path}: it has ${size} bytes, and ${limit}`, {
      exit: 'usage',
    })
  }
  return await readEntry(found)
}

/** The bytes of a file, or of all files of a folder. */
export function sizeOf(found: Found): number {
  if (found.kind === 'file') return found.size
  return found.entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
}

async function readEntry(found: Found): Promise<FolderEntry> {
  const { name, path } = found
  if (found.kind === 'file') return { name, bytes: plainBytes(await readable(readFile(path), path)) }
  const entries: FolderEntry[] = []
  for (const entry of found.entries) entries.push(await readEntry(entry))
  return { name, entries }
}

/** The SHA-256 of a file, which is read through once. */
export async function hashOf(path: string): Promise<Uint8Array> {
  const hash = createHash('sha256')
  await readable(pipeline(createReadStream(path), hash), path)
  return plainBytes(hash.digest())
}

/** Reads a file in pieces of so many bytes, the last one shorter; of an empty file, one of none. */
export async function* readChunks(path: string, size: number): AsyncGenerator<Uint8Array, void> {
  const file = await readable(open(path), path)
  try {
    for (let first = true; ; first = false) {
      const chunk = await readable(readChunk(file, size), path)
      if (chunk.length > 0 || first) yield chunk
      if (chunk.length < size) return
    }
  } finally {
    await file.close()
  }
}

async function readChunk(file: FileHandle, size: number): Promise<Uint8Array> {
  const chunk = new Uint8Array(size)
  let filled = 0
  while (filled < size) {
    const { bytesRead } = await file.read(chunk, filled, size - filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return chunk.subarray(0, filled)
}

async function readable<Result>(reading: Promise<Result>, path: string): Promise<Result> {
  try {
    return await reading
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new CommandError(`cannot read ${path}: ${reason}`, { cause, exit: 'usage' })
  }
}
