import {
  contentPath,
  type Directories,
  DirectoryError,
  type DirectoryMap,
  directoryEntries,
  type Found,
  MAX_LINK_BYTES,
  sitePath,
} from '../../backend/src/protocol/directory.js'
import { type ContentReference, formatOutpoint, readPointer } from '../../backend/src/protocol/outpoint.js'
import { type RedirectRule, RedirectsError, readRedirects } from '../../backend/src/protocol/redirects.js'
import { VerifiedFetchError } from './verified-error.js'
import type { VerifiedStep } from './verify-history.js'
import type { VerifiedOutput } from './verify-output.js'

export type VerifiedFile = VerifiedOutput &
  Required<Pick<VerifiedOutput, 'content'>> & {
    /** The outputs of which patches make the content. */
    bases?: VerifiedStep[]
  }

/** The most directories that one path may open, including the root. */
const MAX_LEVELS = 8

/** What a path leads to, with the verified directories and rules that lead there, in order. */
export type FoundFile = { directories: Iterable<VerifiedFile> } & Exclude<
  Found<VerifiedFile>,
  { kind: 'index' }
>

export interface PathSearch {
  root: VerifiedFile
  /** The segments after the root, decoded. A trailing slash leaves an empty one. */
  segments: readonly string[]
  /** Whether a directory comes as inscribed. */
  raw: boolean
  /** Whether it is a path on the host of a name or an outpoint. */
  isSite: boolean
  /** The content types of directories, which must match exactly. */
  directoryTypes: ReadonlySet<string>
  /** The limit on each directory, and on all on the path together, in bytes. */
  maxDirectoryBytes: number
  /** Fetches and verifies the target of an entry. `isLast`: the path ends there. */
  load: (pointer: Pointer, isLast: boolean) => Promise<VerifiedFile>
}

type Pointer = ContentReference['pointer']

/**
 * Follows a path as the gateway does (`docs/spec/http.md`, Content; on a host {@link sitePath}), in directories that are each
 * verified. Instead of a redirect to an `index.html`, that file is found.
 *
 * @throws VerifiedFetchError `BAD_DIRECTORY`, `NESTING_TOO_DEEP`, and what `load` throws.
 */
export async function findFile(search: PathSearch): Promise<FoundFile> {
  const known: Known = { loaded: new Map(), maps: new Map() }
  for (;;) {
    try {
      return found(search, known)
    } catch (error) {
      if (error instanceof RedirectsError) throw badDirectory(error.message, error)
      if (!(error instanceof Missing)) throw error
      // Each round loads one more directory or file of the path.
      known.loaded.set(keyOf(error.pointer), await search.load(error.pointer, error.isLast))
    }
  }
}

interface Known {
  loaded: Map<string, VerifiedFile>
  maps: Map<VerifiedFile, DirectoryMap>
  rules?: readonly RedirectRule[]
}

function found(search: PathSearch, known: Known): FoundFile {
  const opened = new Set<VerifiedFile>()
  const start = (): Directories<VerifiedFile> => walkOf(search, known, opened)
  const result = search.isSite ? sitePath(start, search) : contentPath(start(), search)
  if (result.kind === 'index') return found({ ...search, segments: ['index.html'] }, known)
  return { directories: opened, ...result }
}

/** An output that a walk needs before it can go on. */
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

/** @param opened Collects what the answer follows from, in order, over all walks for a path. */
function walkOf(
  { directoryTypes, maxDirectoryBytes }: PathSearch,
  known: Known,
  opened: Set<VerifiedFile>,
): Directories<VerifiedFile> {
  const { loaded, maps } = known
  let levels = 0
  let bytes = 0
  const step = (): void => {
    if (++levels > MAX_LEVELS)
      throw new VerifiedFetchError('NESTING_TOO_DEEP', 'directory nesting too deep', { step: 'directory' })
  }
  return {
    isDirectory: ({ content }) => directoryTypes.has(content.contentType),
    open(directory) {
      step()
      const { body } = directory.content
      bytes += body.length
      if (bytes > maxDirectoryBytes)
        throw badDirectory(`the directories on this path have more than ${maxDirectoryBytes} bytes`)
      opened.add(directory)
      const map = maps.get(directory) ?? readMap(directory.content)
      maps.set(directory, map)
      return map
    },
    load(directory, text, isLast) {
      const pointer = absolute(text, directory)
      const file = loaded.get(keyOf(pointer))
      if (file === undefined) throw new Missing(pointer, isLast)
      return file
    },
    link(file) {
      step()
      opened.add(file)
      const { body } = file.content
      return body.length > MAX_LINK_BYTES ? undefined : body
    },
    redirects(file) {
      opened.add(file)
      // A site has only one file with rules.
      known.rules ??= readRedirects(file.content.body)
      return known.rules
    },
  }
}

function readMap({ body, contentType }: VerifiedFile['content']): DirectoryMap {
  try {
    return new Map(directoryEntries(body, contentType))
  } catch (cause) {
    if (!(cause instanceof DirectoryError)) throw cause
    throw badDirectory(`a directory on this path cannot be read: ${cause.message}`, cause)
  }
}

/** A pointer of a directory; siblings are in the directory's transaction. */
function absolute(text: string, { outpoint: { txid } }: VerifiedFile): Pointer {
  const pointer = readPointer(text)
  if (pointer === undefined)
    throw badDirectory(`an entry of a directory is not a pointer: ${JSON.stringify(text.slice(0, 100))}`)
  return pointer.kind === 'sibling' ? { kind: 'outpoint', outpoint: { txid, vout: pointer.vout } } : pointer
}

function badDirectory(message: string, cause?: Error): VerifiedFetchError {
  return new VerifiedFetchError('BAD_DIRECTORY', message, { step: 'directory', cause })
}
