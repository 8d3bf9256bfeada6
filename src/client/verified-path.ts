import { DirectoryError, directoryEntries } from '../../backend/src/protocol/directory.js'
import { type ContentReference, PointerError, parsePointer } from '../../backend/src/protocol/outpoint.js'
import { VerifiedFetchError } from './verified-error.js'
import type { VerifiedOutput } from './verify-output.js'

/** An output with content. */
export type VerifiedFile = VerifiedOutput & Required<Pick<VerifiedOutput, 'content'>>

/** The most directories that one path may open, including the root (`service.md` 8). */
const MAX_LEVELS = 8
/** The entries with a meaning of their own (`service.md` 2.4). */
const DEFAULT = '.'
const INDEX = 'index.html'

/** What a path leads to in verified directories: a file, or the proof that there is none. */
export type FoundFile =
  | { file: VerifiedFile; directories: VerifiedFile[] }
  | { file: undefined; directories: VerifiedFile[]; reason: string }

export interface PathSearch {
  root: VerifiedFile
  /** After the root, decoded. A trailing slash leaves an empty one. */
  segments: readonly string[]
  /** Whether a directory comes as inscribed. */
  raw: boolean
  /** The content types of directories, matched exactly. */
  directoryTypes: ReadonlySet<string>
  /** The largest directory that is read, and all on the path together, in bytes. */
  maxDirectoryBytes: number
  /** Fetches and verifies what an entry points at. `isLast`: nothing follows it on the path. */
  load: (pointer: ContentReference['pointer'], isLast: boolean) => Promise<VerifiedFile>
}

/**
 * Follows a path as the gateway does (`service.md` 4.2), in directories that are each verified. Instead of a redirect to an
 * `index.html`, that file is found.
 *
 * @throws VerifiedFetchError `BAD_DIRECTORY`, `NESTING_TOO_DEEP`, and what `load` throws.
 */
export async function findFile(search: PathSearch): Promise<FoundFile> {
  const walk = new Walk(search)
  const { root, segments, raw } = search
  const isFile = !walk.isDirectory(root)
  const isPath = segments.length > 1 || (segments[0] ?? '') !== ''
  if (isFile || (raw && !isPath)) return { file: root, directories: [] }
  const found = isPath ? await walk.follow(root, segments) : await walk.visit(root)
  const { directories } = walk
  if (typeof found !== 'string') return { file: found, directories }
  return { file: undefined, directories, reason: found }
}

class Walk {
  /** Those that were opened, in order. */
  readonly directories: VerifiedFile[] = []
  private bytes = 0

  constructor(private readonly search: PathSearch) {}

  isDirectory({ content }: VerifiedFile): boolean {
    return this.search.directoryTypes.has(content.contentType)
  }

  /** What a directory without a path leads to: its default, otherwise its index. */
  async visit(directory: VerifiedFile): Promise<VerifiedFile | string> {
    const map = this.open(directory)
    const pointer = map.get(DEFAULT)
    if (pointer === undefined) return await this.index(directory, map)
    const target = await this.load(directory, pointer, true)
    return this.isDirectory(target) ? await this.visit(target) : target
  }

  /** The file at the end of a path of at least one segment. */
  async follow(root: VerifiedFile, segments: readonly string[]): Promise<VerifiedFile | string> {
    let directory = root
    for (const segment of segments.slice(0, -1)) {
      // The empty segment of a trailing slash has no entry, whatever the map says.
      const pointer = segment === '' ? undefined : this.open(directory).get(segment)
      if (pointer === undefined) return 'a directory on this path does not have this entry'
      directory = await this.load(directory, pointer, false)
      if (!this.isDirectory(directory)) return 'an entry in the middle of this path is not a directory'
    }
    const last = segments.at(-1) ?? ''
    const map = this.open(directory)
    const pointer = last === '' ? undefined : map.get(last)
    if (pointer === undefined) return await this.index(directory, map)
    const target = await this.load(directory, pointer, true)
    return last === DEFAULT && this.isDirectory(target) ? await this.visit(target) : target
  }

  private async index(
    directory: VerifiedFile,
    map: ReadonlyMap<string, string>,
  ): Promise<VerifiedFile | string> {
    const pointer = map.get(INDEX)
    if (pointer === undefined) return 'this directory has neither this entry nor an index'
    return await this.load(directory, pointer, true)
  }

  private open(directory: VerifiedFile): ReadonlyMap<string, string> {
    const { maxDirectoryBytes } = this.search
    this.directories.push(directory)
    if (this.directories.length > MAX_LEVELS)
      throw new VerifiedFetchError('NESTING_TOO_DEEP', 'directory nesting too deep', {
        step: 'directory',
      })
    const { body } = directory.content
    this.bytes += body.length
    if (this.bytes > maxDirectoryBytes)
      throw badDirectory(`the directories on this path have more than ${maxDirectoryBytes} bytes`)
    try {
      return new Map(directoryEntries(body))
    } catch (cause) {
      if (!(cause instanceof DirectoryError)) throw cause
      throw badDirectory(`a directory on this path cannot be read: ${cause.message}`, cause)
    }
  }

  private async load(directory: VerifiedFile, text: string, isLast: boolean): Promise<VerifiedFile> {
    let pointer: ReturnType<typeof parsePointer>
    try {
      pointer = parsePointer(text)
    } catch (cause) {
      if (!(cause instanceof PointerError)) throw cause
      throw badDirectory(`an entry of a directory is not a pointer: ${cause.message}`, cause)
    }
    if (pointer.kind !== 'sibling') return await this.search.load(pointer, isLast)
    // In the transaction of the directory.
    const outpoint = { txid: directory.outpoint.txid, vout: pointer.vout }
    return await this.search.load({ kind: 'outpoint', outpoint }, isLast)
  }
}

function badDirectory(message: string, cause?: Error): VerifiedFetchError {
  return new VerifiedFetchError('BAD_DIRECTORY', message, { step: 'directory', ...(cause && { cause }) })
}
