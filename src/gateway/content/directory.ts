import { Mutex } from 'async-mutex'
import { LRUCache } from 'lru-cache'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import { type Awaitable, TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { DirectoryError, directoryEntries } from '../../../backend/src/protocol/directory.js'
import { type Outpoint, PointerError, parsePointer } from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/graph-reads.js'
import { AnswerError } from '../http/errors.js'
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

/** Long directories that were read for a question, by the hash of their bodies. */
export type ReadDirectories = ReadonlyMap<string, ReadMapResult>

/** Finds files by their paths in directories (`service.md` 4.2). */
export class FileFinder {
  private readonly types: ReadonlySet<string>
  private readonly maps: DirectoryMaps

  constructor(
    private readonly options: {
      store: GraphReads
      directoryContentTypes: string[]
      /** The largest directory that is read into memory. */
      maxDirectoryBytes: number
    },
  ) {
    this.types = new Set(options.directoryContentTypes)
    this.maps = new DirectoryMaps(options.store, options.maxDirectoryBytes)
  }

  /**
   * @throws AnswerError if a path leads nowhere (`NOT_FOUND`), or through more than 8 directories (`NESTING_TOO_DEEP`); what
   * {@link afterLong} catches, for a long directory that is not among those that were read.
   */
  find({ root, segments, raw }: PathQuestion, read?: ReadDirectories): Found {
    const { store, maxDirectoryBytes } = this.options
    const isDirectory = ({ content }: ContentOutput): boolean => this.types.has(content.contentType)
    // Every path below a file leads to the file: there is no map to look the segments up in.
    if (!isDirectory(root)) return { kind: 'file', file: root }
    const readMap: ReadMap = (content) => this.maps.read(content, read)
    const walk = new Walk({ store, isDirectory, readMap, maxPathBytes: 2 * maxDirectoryBytes })
    // `/content/{pointer}/` means the directory too: the slash alone is an empty path.
    if (segments.length > 1 || (segments[0] ?? '') !== '')
      return { kind: 'file', file: walk.follow(root, segments) }
    return raw ? { kind: 'file', file: root } : walk.visit(root)
  }

  /** What an answer comes to, at once or after the long directories on its way were read. */
  afterLong<Answer>(
    answer: (read: ReadDirectories | undefined) => Answer,
    read?: ReadDirectories,
  ): Awaitable<Answer> {
    try {
      return answer(read)
    } catch (error) {
      if (!(error instanceof LongDirectory)) throw error
      const { content } = error
      return this.maps
        .readLong(content)
        .then((map) => this.afterLong(answer, new Map(read).set(content.sha256, map)))
    }
  }
}

/** @throws LongDirectory for one that was not read yet. */
type ReadMap = (content: ContentSummary) => ReadonlyMap<string, string>

/** One walk through directories. It counts those it opens, so that maps that lead back to themselves end it. */
class Walk {
  private levels = 0
  private bytes = 0

  constructor(
    private readonly options: {
      store: GraphReads
      isDirectory: (output: ContentOutput) => boolean
      readMap: ReadMap
      maxPathBytes: number
    },
  ) {}

  /** What a directory without a path leads to: its default, otherwise its index. */
  visit(directory: ContentOutput): Found {
    const map = this.open(directory)
    const pointer = map.get(DEFAULT)
    if (pointer !== undefined) return { kind: 'file', file: this.defaultOf(directory, pointer) }
    if (map.has(INDEX)) return { kind: 'index' }
    throw new AnswerError('NOT_FOUND', 'this directory has no default entry')
  }

  /** The file at the end of a path of at least one segment. */
  follow(root: ContentOutput, segments: string[]): ContentOutput {
    let directory = root
    for (const segment of segments.slice(0, -1)) {
      const pointer = entry(this.open(directory), segment)
      if (pointer === undefined)
        throw new AnswerError('NOT_FOUND', 'a directory on this path does not have this entry')
      directory = this.load(directory, pointer)
      if (!this.options.isDirectory(directory)) {
        throw new AnswerError('NOT_FOUND', 'an entry in the middle of this path is not a directory')
      }
    }
    const last = segments.at(-1) ?? ''
    const map = this.open(directory)
    const pointer = entry(map, last)
    if (last === DEFAULT && pointer !== undefined) return this.defaultOf(directory, pointer)
    const found = pointer ?? map.get(INDEX)
    if (found === undefined)
      throw new AnswerError('NOT_FOUND', 'this directory has neither this entry nor an index')
    return this.load(directory, found)
  }

  /**
   * What the default entry of a directory leads to. If that is a directory too, its own default or index follows, without a
   * redirect: a redirect would look the index up in the directory that the path names.
   */
  private defaultOf(directory: ContentOutput, pointer: string): ContentOutput {
    const target = this.load(directory, pointer)
    if (!this.options.isDirectory(target)) return target
    const map = this.open(target)
    const next = map.get(DEFAULT)
    if (next !== undefined) return this.defaultOf(target, next)
    const index = map.get(INDEX)
    if (index === undefined)
      throw new AnswerError('NOT_FOUND', 'the default entry is a directory without a default or index')
    return this.load(target, index)
  }

  private open(directory: ContentOutput): ReadonlyMap<string, string> {
    this.levels++
    if (this.levels > MAX_LEVELS) throw new AnswerError('NESTING_TOO_DEEP', 'directory nesting too deep')
    const { readMap, maxPathBytes } = this.options
    this.bytes += directory.content.length
    // Before anything of it is read; a single one has a limit of its own.
    if (this.levels > 1 && this.bytes > maxPathBytes)
      throw new AnswerError(
        'NOT_FOUND',
        `the directories on this path have more than ${maxPathBytes} bytes in total`,
      )
    return readMap(directory.content)
  }

  private load(directory: ContentOutput, pointer: string): ContentOutput {
    const target = contentAt(this.options.store, absolute(pointer, directory.outpoint))
    if (target === undefined) {
      throw new AnswerError('NOT_FOUND', 'this store does not have the content that the directory points to')
    }
    return target
  }
}

/** The entry of a segment. The empty one of a trailing slash has none, whatever the map says (`docs/spec/http.md`). */
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
    throw new AnswerError('NOT_FOUND', 'this entry of the directory is not a valid pointer')
  }
}

/** A directory that takes several turns of the event loop to read. */
class LongDirectory extends Error {
  constructor(readonly content: ContentSummary) {
    super(`${content.sha256} is a long directory, and not read yet`)
  }
}

/**
 * Reads maps, and caches them by the hash of the body, which all directories with that body share. Whether the outpoint itself
 * is in the store was checked before.
 */
class DirectoryMaps {
  // Errors are cached too, so that a large invalid body is not read again for every request.
  private readonly cached = new LRUCache<string, ReadMapResult>({ maxSize: CACHED_BYTES })
  private readonly inProgress = new Map<string, Promise<ReadMapResult>>()

  constructor(
    private readonly store: GraphReads,
    private readonly maxDirectoryBytes: number,
  ) {}

  /**
   * @param known Those that were read for the same question.
   * @throws LongDirectory; AnswerError if it is served as inscribed alone.
   */
  read(content: ContentSummary, known?: ReadonlyMap<string, ReadMapResult>): ReadonlyMap<string, string> {
    const { maxDirectoryBytes } = this
    if (content.length > maxDirectoryBytes) {
      throw new AnswerError(
        'NOT_FOUND',
        `a directory of more than ${maxDirectoryBytes} bytes is served raw only, without paths`,
      )
    }
    const { sha256 } = content
    const map = this.cached.get(sha256) ?? known?.get(sha256) ?? this.readShort(content)
    if (map instanceof DirectoryError) {
      throw new AnswerError('NOT_FOUND', `this directory is served raw only, without paths: ${map.message}`)
    }
    return map
  }

  /** Once for all who ask for it meanwhile. */
  readLong(content: ContentSummary): Promise<ReadMapResult> {
    const { inProgress } = this
    const { sha256 } = content
    const known = inProgress.get(sha256)
    if (known !== undefined) return known
    const read = async (): Promise<ReadMapResult> => {
      const map = await readMap(completeBody(this.store, content))
      this.keep(content, map)
      return map
    }
    const reading = longDirectories.runExclusive(read).finally(() => inProgress.delete(sha256))
    inProgress.set(sha256, reading)
    return reading
  }

  private readShort(content: ContentSummary): ReadMapResult {
    if (content.length > LONG_BYTES) throw new LongDirectory(content)
    let map: ReadMapResult
    try {
      map = new Map(directoryEntries(completeBody(this.store, content)))
    } catch (error) {
      if (!(error instanceof DirectoryError)) throw error
      map = error
    }
    this.keep(content, map)
    return map
  }

  private keep({ sha256 }: ContentSummary, map: ReadMapResult): void {
    this.cached.set(sha256, map, { size: weightOf(map) })
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

function completeBody(store: GraphReads, { sha256, length }: ContentSummary): Uint8Array {
  const body = joinBytes([...store.content.chunks(sha256)])
  if (body.length !== length) throw shortOf({ sha256, length }, body.length)
  return body
}
