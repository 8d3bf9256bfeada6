import { Mutex } from 'async-mutex'
import { LRUCache } from 'lru-cache'
import type { GraphReader } from '../../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { DirectoryError, directoryEntries } from '../../../backend/src/protocol/directory.js'
import { type Outpoint, PointerError, parsePointer } from '../../../backend/src/protocol/outpoint.js'
import { BadRequestError, NotFoundError } from '../http/errors.js'
import { shortOf } from '../http/send-body.js'
import { type ContentOutput, contentAt } from './content-root.js'

/** The entries with a meaning of their own (`service.md` 2.4). */
const DEFAULT = '.'
const INDEX = 'index.html'

/** The most directories that one path may open, including the root (`service.md` 8, which also fixes the message). */
const MAX_LEVELS = 8

/** The approximate memory of all cached maps, and of an entry beyond its characters. */
const CACHED_BYTES = 32 * 1024 * 1024
const ENTRY_BYTES = 100

/** A directory of more bytes is long: those are read one at a time in this process. */
const LONG_BYTES = 64 * 1024
/** Entries that are read between checks of the time. */
const ENTRIES_PER_CHECK = 500

const longDirectories = new Mutex()

/** What a path leads to: a file, or a redirect to its `index.html`. */
export type Found = { kind: 'file'; file: ContentOutput } | { kind: 'index' }

export interface PathQuestion {
  /** The content that the pointer of the path points at. */
  root: ContentOutput
  /** The segments after it, decoded. A trailing slash leaves an empty one. */
  segments: string[]
  /** Whether to return a directory as inscribed. */
  raw: boolean
}

/**
 * Returns a function that finds files by their paths in directories (`service.md` 4.2). It throws NotFoundError if a path leads
 * nowhere, and BadRequestError (`NESTING_TOO_DEEP`) if it leads through more than 8 directories.
 */
export function fileFinder({
  store,
  directoryContentTypes,
  maxDirectoryBytes,
  maxPathBytes,
}: {
  store: GraphReader
  directoryContentTypes: string[]
  /** The largest directory that is read into memory. */
  maxDirectoryBytes: number
  /** The largest total of the directories that one path opens. */
  maxPathBytes: number
}): (question: PathQuestion) => Found | Promise<Found> {
  const types = new Set(directoryContentTypes)
  const isDirectory = ({ content }: ContentOutput): boolean => types.has(content.contentType)
  const readMap = mapReader(store, maxDirectoryBytes)
  const findIn = async ({ root, segments, raw }: PathQuestion): Promise<Found> => {
    const walk = new Walk({ store, isDirectory, readMap, maxPathBytes })
    // `/content/{pointer}/` means the directory too: the slash alone is an empty path.
    if (segments.length > 1 || (segments[0] ?? '') !== '') {
      return { kind: 'file', file: await walk.follow(root, segments) }
    }
    if (raw) return { kind: 'file', file: root }
    return await walk.visit(root)
  }
  // Every path below a file leads to the file: there is no map to look the segments up in.
  return (question) => (isDirectory(question.root) ? findIn(question) : { kind: 'file', file: question.root })
}

type ReadMap = (content: ContentSummary) => Promise<ReadonlyMap<string, string>>

/** One walk through directories. It counts those it opens, so that maps that lead back to themselves end it. */
class Walk {
  private levels = 0
  private bytes = 0

  constructor(
    private readonly options: {
      store: GraphReader
      isDirectory: (output: ContentOutput) => boolean
      readMap: ReadMap
      maxPathBytes: number
    },
  ) {}

  /** What a directory without a path leads to: its default, otherwise its index. */
  async visit(directory: ContentOutput): Promise<Found> {
    const map = await this.open(directory)
    const pointer = map.get(DEFAULT)
    if (pointer !== undefined) return { kind: 'file', file: await this.defaultOf(directory, pointer) }
    if (map.has(INDEX)) return { kind: 'index' }
    throw new NotFoundError('this directory has no default entry')
  }

  /** The file at the end of a path of at least one segment. */
  async follow(root: ContentOutput, segments: string[]): Promise<ContentOutput> {
    let directory = root
    for (const segment of segments.slice(0, -1)) {
      const pointer = entry(await this.open(directory), segment)
      if (pointer === undefined) throw new NotFoundError('a directory on this path does not have this entry')
      directory = await this.load(directory, pointer)
      if (!this.options.isDirectory(directory)) {
        throw new NotFoundError('an entry in the middle of this path is not a directory')
      }
    }
    const last = segments.at(-1) ?? ''
    const map = await this.open(directory)
    const pointer = entry(map, last)
    if (last === DEFAULT && pointer !== undefined) return await this.defaultOf(directory, pointer)
    const found = pointer ?? map.get(INDEX)
    if (found === undefined) throw new NotFoundError('this directory has neither this entry nor an index')
    return await this.load(directory, found)
  }

  /**
   * What the default entry of a directory leads to. If that is a directory too, its own default or index follows, without a
   * redirect: a redirect would look the index up in the directory that the path names.
   */
  private async defaultOf(directory: ContentOutput, pointer: string): Promise<ContentOutput> {
    const target = await this.load(directory, pointer)
    if (!this.options.isDirectory(target)) return target
    const map = await this.open(target)
    const next = map.get(DEFAULT)
    if (next !== undefined) return await this.defaultOf(target, next)
    const index = map.get(INDEX)
    if (index === undefined)
      throw new NotFoundError('the default entry is a directory without a default or index')
    return await this.load(target, index)
  }

  private async open(directory: ContentOutput): Promise<ReadonlyMap<string, string>> {
    this.levels++
    if (this.levels > MAX_LEVELS) throw new BadRequestError('NESTING_TOO_DEEP', 'directory nesting too deep')
    const { readMap, maxPathBytes } = this.options
    this.bytes += directory.content.length
    // Before anything of it is read; a single one has a limit of its own.
    if (this.levels > 1 && this.bytes > maxPathBytes)
      throw new NotFoundError(`the directories on this path have more than ${maxPathBytes} bytes in total`)
    return await readMap(directory.content)
  }

  private async load(directory: ContentOutput, pointer: string): Promise<ContentOutput> {
    const target = await contentAt(this.options.store, absolute(pointer, directory.outpoint))
    if (target === undefined) {
      throw new NotFoundError('this store does not have the content that the directory points to')
    }
    return target
  }
}

/** The entry of a segment. The empty one of a trailing slash has none, whatever the map says (`spec/http.md`). */
function entry(map: ReadonlyMap<string, string>, segment: string): string | undefined {
  return segment === '' ? undefined : map.get(segment)
}

/** A pointer of a map, with siblings resolved in the transaction of the directory. */
function absolute(text: string, { txid }: Outpoint): Parameters<typeof contentAt>[1] {
  try {
    const pointer = parsePointer(text)
    return pointer.kind === 'sibling' ? { kind: 'outpoint', outpoint: { txid, vout: pointer.vout } } : pointer
  } catch (error) {
    if (!(error instanceof PointerError)) throw error
    // Unlike one in the path, it is not the client's error.
    throw new NotFoundError('this entry of the directory is not a valid pointer')
  }
}

/**
 * Reads maps, and caches them by the hash of the body, which all directories with that body share. Whether the outpoint itself
 * is in the store was checked before.
 */
function mapReader(store: GraphReader, maxDirectoryBytes: number): ReadMap {
  // Errors are cached too, so that a large invalid body is not read again for every request.
  const cached = new LRUCache<string, ReadMapResult>({ maxSize: CACHED_BYTES })
  const inProgress = new Map<string, Promise<ReadMapResult>>()
  const read = async (content: ContentSummary): Promise<ReadMapResult> => {
    const parse = async () => await readMap(await completeBody(store, content))
    const map = await (content.length > LONG_BYTES ? longDirectories.runExclusive(parse) : parse())
    cached.set(content.sha256, map, { size: weightOf(map) })
    return map
  }
  return async (content) => {
    if (content.length > maxDirectoryBytes) {
      throw new NotFoundError(
        `a directory of more than ${maxDirectoryBytes} bytes is served raw only, without paths`,
      )
    }
    const { sha256 } = content
    let map = cached.get(sha256)
    if (map === undefined) {
      const reading = inProgress.get(sha256) ?? read(content).finally(() => inProgress.delete(sha256))
      inProgress.set(sha256, reading)
      map = await reading
    }
    if (map instanceof DirectoryError) {
      throw new NotFoundError(`this directory is served raw only, without paths: ${map.message}`)
    }
    return map
  }
}

type ReadMapResult = ReadonlyMap<string, string> | DirectoryError

function weightOf(map: ReadMapResult): number {
  if (map instanceof DirectoryError) return ENTRY_BYTES
  let weight = ENTRY_BYTES
  for (const [name, pointer] of map) weight += ENTRY_BYTES + name.length + pointer.length
  return weight
}

/** A body of a mebibyte may have a hundred thousand entries: this yields between them. */
async function readMap(body: Uint8Array): Promise<ReadMapResult> {
  const map = new Map<string, string>()
  const slice = new TimeSlice()
  try {
    let read = 0
    for (const [name, pointer] of directoryEntries(body)) {
      map.set(name, pointer)
      if (++read % ENTRIES_PER_CHECK === 0) await slice.yieldIfOver()
    }
    return map
  } catch (error) {
    if (error instanceof DirectoryError) return error
    throw error
  }
}

async function completeBody(store: GraphReader, { sha256, length }: ContentSummary): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.content.chunks(sha256)) chunks.push(chunk)
  const body = joinBytes(chunks)
  if (body.length !== length) throw shortOf({ sha256, length }, body.length)
  return body
}
