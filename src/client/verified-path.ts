import {
  contentPath,
  type Directories,
  DirectoryError,
  directoryEntries,
  sitePath,
} from '../../backend/src/protocol/directory.js'
import {
  type ContentReference,
  formatOutpoint,
  PointerError,
  parsePointer,
} from '../../backend/src/protocol/outpoint.js'
import { type RedirectRule, RedirectsError, readRedirects } from '../../backend/src/protocol/redirects.js'
import { VerifiedFetchError } from './verified-error.js'
import type { VerifiedOutput } from './verify-output.js'

/** An output with content. */
export type VerifiedFile = VerifiedOutput & Required<Pick<VerifiedOutput, 'content'>>

/** The most directories that one path may open, including the root (`service.md` 8). */
const MAX_LEVELS = 8

/** What a path leads to by verified directories and rules: a file, another place, or the proof that there is nothing. */
export type FoundFile = { directories: VerifiedFile[] } & (
  | { file: VerifiedFile; status: number }
  | { file: undefined; location: string; status: number }
  | { file: undefined; location?: undefined; reason: string }
)

export interface PathSearch {
  root: VerifiedFile
  /** After the root, decoded. A trailing slash leaves an empty one. */
  segments: readonly string[]
  /** Whether a directory comes as inscribed. */
  raw: boolean
  /** Whether it is a path on the host of a name or an outpoint. */
  isSite: boolean
  /** The content types of directories, matched exactly. */
  directoryTypes: ReadonlySet<string>
  /** The largest directory that is read, and all on the path together, in bytes. */
  maxDirectoryBytes: number
  /** Fetches and verifies what an entry points at. `isLast`: nothing follows it on the path. */
  load: (pointer: Pointer, isLast: boolean) => Promise<VerifiedFile>
}

type Pointer = ContentReference['pointer']

/**
 * Follows a path as the gateway does (`service.md` 4.2; on a host {@link sitePath}), in directories that are each verified. Instead of
 * a redirect to an `index.html`, that file is found.
 *
 * @throws VerifiedFetchError `BAD_DIRECTORY`, `NESTING_TOO_DEEP`, and what `load` throws.
 */
export async function findFile(search: PathSearch): Promise<FoundFile> {
  const loaded = new Map<string, VerifiedFile>()
  const maps = new Map<VerifiedFile, ReadonlyMap<string, string>>()
  for (;;) {
    try {
      return found(search, { loaded, maps })
    } catch (error) {
      if (!(error instanceof Missing)) throw error
      // Each time with one more: as many as directories and files on the path.
      loaded.set(keyOf(error.pointer), await search.load(error.pointer, error.isLast))
    }
  }
}

interface Known {
  loaded: ReadonlyMap<string, VerifiedFile>
  maps: Map<VerifiedFile, ReadonlyMap<string, string>>
}

function found(search: PathSearch, known: Known): FoundFile {
  const directories: VerifiedFile[] = []
  const start = (): Walk => new Walk(search, known, directories)
  try {
    const result = search.isSite ? sitePath(start, search) : contentPath(start(), search)
    switch (result.kind) {
      case 'file':
        return { directories, file: result.file, status: result.status }
      case 'index':
        return { directories, file: result.load(), status: 200 }
      case 'moved':
        return { directories, file: undefined, location: result.location, status: result.status }
      case 'missing':
        return { directories, file: undefined, reason: result.reason }
    }
  } catch (error) {
    if (error instanceof RedirectsError) throw badDirectory(error.message, error)
    throw error
  }
}

/** What a walk needs before it can go on. */
class Missing extends Error {
  constructor(
    readonly pointer: Pointer,
    readonly isLast: boolean,
  ) {
    super(`${keyOf(pointer)} is not loaded yet`)
  }
}

function keyOf(pointer: Pointer): string {
  return pointer.kind === 'outpoint' ? formatOutpoint(pointer.outpoint) : pointer.txid
}

class Walk implements Directories<VerifiedFile> {
  private levels = 0
  private bytes = 0

  /** @param opened What the answer follows from, in order; of all walks for a path. */
  constructor(
    private readonly search: PathSearch,
    private readonly known: Known,
    private readonly opened: VerifiedFile[],
  ) {}

  isDirectory({ content }: VerifiedFile): boolean {
    return this.search.directoryTypes.has(content.contentType)
  }

  open(directory: VerifiedFile): ReadonlyMap<string, string> {
    const { maxDirectoryBytes } = this.search
    this.levels++
    if (this.levels > MAX_LEVELS)
      throw new VerifiedFetchError('NESTING_TOO_DEEP', 'directory nesting too deep', {
        step: 'directory',
      })
    const { body } = directory.content
    this.bytes += body.length
    if (this.bytes > maxDirectoryBytes)
      throw badDirectory(`the directories on this path have more than ${maxDirectoryBytes} bytes`)
    if (!this.opened.includes(directory)) this.opened.push(directory)
    const { maps } = this.known
    const map = maps.get(directory) ?? readMap(body)
    maps.set(directory, map)
    return map
  }

  load(directory: VerifiedFile, text: string, isLast: boolean): VerifiedFile {
    const pointer = absolute(text, directory)
    const file = this.known.loaded.get(keyOf(pointer))
    if (file === undefined) throw new Missing(pointer, isLast)
    return file
  }

  redirects(file: VerifiedFile): readonly RedirectRule[] {
    if (!this.opened.includes(file)) this.opened.push(file)
    return readRedirects(file.content.body)
  }
}

function readMap(body: Uint8Array): ReadonlyMap<string, string> {
  try {
    return new Map(directoryEntries(body))
  } catch (cause) {
    if (!(cause instanceof DirectoryError)) throw cause
    throw badDirectory(`a directory on this path cannot be read: ${cause.message}`, cause)
  }
}

/** A pointer of a map, with siblings resolved in the transaction of the directory. */
function absolute(text: string, { outpoint: { txid } }: VerifiedFile): Pointer {
  try {
    const pointer = parsePointer(text)
    return pointer.kind === 'sibling' ? { kind: 'outpoint', outpoint: { txid, vout: pointer.vout } } : pointer
  } catch (cause) {
    if (!(cause instanceof PointerError)) throw cause
    throw badDirectory(`an entry of a directory is not a pointer: ${cause.message}`, cause)
  }
}

function badDirectory(message: string, cause?: Error): VerifiedFetchError {
  return new VerifiedFetchError('BAD_DIRECTORY', message, { step: 'directory', ...(cause && { cause }) })
}
