import { createHash } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { FolderEntry } from '../publish/content-tree.js'
import { CommandError, MAX_TRANSACTION_BYTES, usageError } from './command.js'
import { IgnoreRules } from './ignore-rules.js'
import { readable } from './user-files.js'

/** How much of a file is read at once to hash it, in bytes. */
const HASH_CHUNK_BYTES = 1024 ** 2

export type FoundEntry = FoundFile | FoundFolder

export interface FoundFile {
  kind: 'file'
  name: string
  /** The path as the user gave it. */
  path: string
  /** The path without symbolic links: no other file is read. */
  real: string
  /** In bytes. */
  size: number
  /** Identify the file as it was found. */
  device: number
  inode: number
}

interface FoundFolder {
  kind: 'folder'
  name: string
  path: string
  entries: FoundEntry[]
}

export interface LeftOut {
  /** Relative to the folder; with a trailing slash if it is a folder. */
  path: string
  /** A clause: `it is hidden`. */
  reason: string
}

/**
 * Finds what to publish at a path from the user. A single file is always published, also through a link. From a folder, hidden
 * and ignored files ({@link IgnoreRules}) are left out, and links that leave it.
 *
 * @throws CommandError (`usage`) if something cannot be read, is neither file nor folder, or leads back into itself; and if
 * nothing of a folder is left.
 */
export async function findAt(path: string, name: string): Promise<{ found: FoundEntry; leftOut: LeftOut[] }> {
  const stats = await readable(stat(path), path)
  const real = await readable(realpath(path), path)
  if (!stats.isDirectory()) return { found: fileAt({ path, name, real, stats }), leftOut: [] }
  const walk = new FolderWalk(real)
  const found = await walk.folder({ path, name, real, at: '', above: [] })
  const { leftOut } = walk
  const [first] = leftOut
  if (countOf(found) === 0)
    throw usageError(
      first === undefined
        ? `nothing to publish: ${path} has no files`
        : `nothing to publish: every file in ${path} is left out (${first.path}: ${first.reason}); name a file, or include files again in ${join(path, '.publishignore')}, as !${first.path}`,
    )
  return { found, leftOut }
}

function fileAt(file: { path: string; name: string; real: string; stats: Stats }): FoundFile {
  const { path, name, real, stats } = file
  if (!stats.isFile()) throw usageError(`cannot publish ${path}: it is neither a file nor a folder`)
  return { kind: 'file', name, path, real, size: stats.size, device: stats.dev, inode: stats.ino }
}

/** A position in a walk through a folder. */
interface Place {
  path: string
  name: string
  /** Without symbolic links. */
  real: string
  /** The path from the published folder, links included; empty for the folder itself. */
  at: string
  /** The folders above, without symbolic links. */
  above: readonly string[]
}

class FolderWalk {
  readonly leftOut: LeftOut[] = []
  private readonly rules: IgnoreRules

  constructor(
    /** The published folder, without symbolic links. */
    private readonly root: string,
  ) {
    this.rules = new IgnoreRules(root)
  }

  async folder({ path, name, real, at, above }: Place): Promise<FoundFolder> {
    if (above.includes(real)) throw usageError(`cannot publish ${path}: it leads back to ${real}`)
    const entries: FoundEntry[] = []
    for (const entry of (await readable(readdir(real), path)).sort()) {
      const found = await this.entry({
        path: join(path, entry),
        name: entry,
        real: join(real, entry),
        at: at === '' ? entry : `${at}/${entry}`,
        above: [...above, real],
      })
      if (found !== undefined) entries.push(found)
    }
    return { kind: 'folder', name, path, entries }
  }

  /** An entry of a folder; undefined if it is left out. */
  private async entry(place: Place): Promise<FoundEntry | undefined> {
    const stats = await readable(lstat(place.real), place.path)
    const isFolder = stats.isDirectory()
    const shown = isFolder ? `${place.at}/` : place.at
    // Checked before a link is followed: `.env` may lead anywhere.
    const reason = await this.reasonFor(place, isFolder)
    if (reason !== undefined) return this.leaveOut(shown, reason)
    if (stats.isSymbolicLink()) return await this.link(place)
    if (isFolder) return await this.subfolder(place)
    return fileAt({ ...place, stats })
  }

  /** The target of a link, if it is in the published folder and not left out itself. */
  private async link(place: Place): Promise<FoundEntry | undefined> {
    let real: string
    try {
      real = await realpath(place.real)
    } catch (error) {
      if (!['ENOENT', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? ''))
        return await readable(Promise.reject(error), place.path)
      return this.leaveOut(place.at, 'it is a broken link')
    }
    if (!this.contains(real)) return this.leaveOut(place.at, 'it is a link out of the folder')
    const stats = await readable(lstat(real), place.path)
    const isFolder = stats.isDirectory()
    const target = { ...place, real }
    const reason = await this.reasonFor(target, isFolder)
    if (reason !== undefined) {
      const to = this.within(real)
      return this.leaveOut(place.at, to === place.at ? reason : `it is a link to ${to}: ${reason}`)
    }
    return isFolder ? await this.subfolder(target) : fileAt({ ...target, stats })
  }

  /** A folder with nothing left is omitted without a report: each of its files was reported. */
  private async subfolder(place: Place): Promise<FoundEntry | undefined> {
    const before = this.leftOut.length
    const found = await this.folder(place)
    return this.leftOut.length > before && found.entries.length === 0 ? undefined : found
  }

  /** Why something is left out: by its name here, or by its name without links. */
  private async reasonFor({ at, real }: Place, isFolder: boolean): Promise<string | undefined> {
    const reason = await this.rules.reasonToLeaveOut(at, { isFolder })
    const within = this.within(real)
    if (reason !== undefined || within === at || within === '') return reason
    return await this.rules.reasonToLeaveOut(within, { isFolder })
  }

  private leaveOut(path: string, reason: string): undefined {
    this.leftOut.push({ path, reason })
  }

  private contains(real: string): boolean {
    return real === this.root || real.startsWith(this.root.endsWith(sep) ? this.root : this.root + sep)
  }

  private within(real: string): string {
    return relative(this.root, real).split(sep).join('/')
  }
}

export function sizeOf(found: FoundEntry): number {
  if (found.kind === 'file') return found.size
  return found.entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
}

export function countOf(found: FoundEntry): number {
  if (found.kind === 'file') return 1
  return found.entries.reduce((sum, entry) => sum + countOf(entry), 0)
}

/**
 * Reads a file, or all files of a folder, into memory.
 *
 * @throws CommandError if they exceed the size of one transaction, or a file cannot be read or has changed.
 */
export async function readEntries(found: FoundEntry): Promise<FolderEntry> {
  const size = sizeOf(found)
  if (size > MAX_TRANSACTION_BYTES) {
    const limit = `one transaction holds at most ${MAX_TRANSACTION_BYTES}`
    throw usageError(`cannot publish ${found.path}: it has ${size} bytes, but ${limit}`)
  }
  return await readEntry(found)
}

async function readEntry(found: FoundEntry): Promise<FolderEntry> {
  const { name } = found
  if (found.kind === 'file') return { name, bytes: await readFound(found) }
  const entries: FolderEntry[] = []
  for (const entry of found.entries) entries.push(await readEntry(entry))
  return { name, entries }
}

async function readFound(found: FoundFile): Promise<Uint8Array> {
  const file = await openFound(found)
  try {
    // One byte more than expected, to notice that it has grown.
    const bytes = await readable(readChunk(file, found.size + 1), found.path)
    if (bytes.length !== found.size) throw changed(found)
    return bytes
  } finally {
    await file.close()
  }
}

/** The SHA-256 of a file, which is read once. */
export async function hashOf(found: FoundFile): Promise<Uint8Array> {
  const hash = createHash('sha256')
  for await (const chunk of readChunks(found, HASH_CHUNK_BYTES)) hash.update(chunk)
  return new Uint8Array(hash.digest())
}

/** Reads a file in chunks of this size, the last one shorter; an empty file has one empty chunk. */
export async function* readChunks(found: FoundFile, size: number): AsyncGenerator<Uint8Array, void> {
  const file = await openFound(found)
  try {
    for (let first = true; ; first = false) {
      const chunk = await readable(readChunk(file, size), found.path)
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

/** Fails for links, and does not wait for a writer of a pipe. Windows has neither flag. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * Opens exactly the file that was found: since then, it or a folder above it may have been replaced by a link that leaves the
 * published folder.
 */
async function openFound(found: FoundFile): Promise<FileHandle> {
  const { path, real, device, inode } = found
  let file: FileHandle
  try {
    file = await open(real, OPEN_FLAGS)
  } catch (error) {
    // It has become a link.
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') throw changed(found)
    return await readable(Promise.reject(error), path)
  }
  try {
    // The open file must be the one that was found, under the same path, without links.
    const stats = await file.stat()
    if (stats.dev !== device || stats.ino !== inode || !stats.isFile()) throw changed(found)
    if ((await readable(pathOf(file, real), path)) !== real) throw changed(found)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** The path of an open file without symbolic links. Linux knows it for the open file itself, which prevents a race. */
async function pathOf(file: FileHandle, real: string): Promise<string> {
  if (process.platform !== 'linux') return await realpath(real)
  // Falls back where /proc is missing, as in some containers.
  return await readlink(`/proc/self/fd/${file.fd}`).catch(() => realpath(real))
}

function changed({ path }: FoundFile): CommandError {
  return new CommandError(`${path} changed while it was published: try again`)
}
