import { Mutex } from 'async-mutex'
import { LRUCache } from 'lru-cache'
import type { GraphReader } from '../../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { DirectoryError, directoryEntries } from '../../../backend/src/protocol/directory.js'
import { type Outpoint, PointerError, parsePointer } from '../../../backend/src/protocol/outpoint.js'
import { BadRequestError, NotFoundError } from '../http/errors.js'
import { servedType } from '../http/security-headers.js'
import { type ContentOutput, contentAt } from './content-root.js'

/** The entries with a meaning of their own (`service.md` 2.4). */
const DEFAULT = '.'
const INDEX = 'index.html'

/** How many directories one path may open, the root among them (`service.md` 8). */
const MAX_LEVELS = 8

/** About how much memory the maps take that are kept, and an entry of one beside its characters. */
const CACHED_BYTES = 32 * 1024 * 1024
const ENTRY_BYTES = 100

/** From how many bytes on a directory is long: those are read one at a time in this process. */
const LONG_BYTES = 64 * 1024
/** How many entries are read before the time is looked at. */
const ENTRIES_A_LOOK = 500

const longDirectories = new Mutex()

/** What a path leads to: a file, or the same path with `/index.html` behind it. */
export type Found = { kind: 'file'; file: ContentOutput } | { kind: 'index' }

export interface PathQuestion {
  /** What the pointer of the path points at. */
  root: ContentOutput
  /** The segments behind it, decoded. A slash at the end leaves an empty one. */
  segments: string[]
  /** Whether a directory is asked for as it was inscribed. */
  raw: boolean
}

/**
 * Finds files by their paths in directories (`service.md` 4.2). What it gives back throws NotFoundError where a path
 * leads nowhere, and BadRequestError (`NESTING_TOO_DEEP`) where it leads through more than 8 directories.
 */
export function fileFinder({
  store,
  directoryContentTypes,
  maxDirectoryBytes,
  maxPathBytes,
}: {
  store: GraphReader
  directoryContentTypes: string[]
  /** Of a directory, all is read into memory. */
  maxDirectoryBytes: number
  /** Of all directories that one path opens. */
  maxPathBytes: number
}): (question: PathQuestion) => Found | Promise<Found> {
  const types = new Set(directoryContentTypes.map((type) => type.toLowerCase()))
  const isDirectory = ({ content }: ContentOutput): boolean =>
    types.has(servedType(content.contentType).essence)
  const readMap = mapReader(store, maxDirectoryBytes)
  const findIn = async ({ root, segments, raw }: PathQuestion): Promise<Found> => {
    const walk = new Walk({ store, isDirectory, readMap, maxPathBytes })
    // `/content/{pointer}/` asks for the directory, too: the slash alone is an empty path.
    if (segments.length > 1 || (segments[0] ?? '') !== '') {
      return { kind: 'file', file: await walk.follow(root, segments) }
    }
    if (raw) return { kind: 'file', file: root }
    return await walk.visit(root)
  }
  // A file is itself under every path below it: there is nothing to look the segments up in.
  return (question) => (isDirectory(question.root) ? findIn(question) : { kind: 'file', file: question.root })
}

type ReadMap = (content: ContentSummary) => Promise<ReadonlyMap<string, string>>

/** One way through directories, which counts those it has opened: maps that lead back to themselves end there. */
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

  /** What stands for a directory that is asked for without a path: its default, else its index. */
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
   * What the default entry of a directory leads to. Where that is a directory, its default in turn, or its index, and
   * that in place: a redirect would look the index up in the directory that the path names.
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
    if (this.levels > MAX_LEVELS)
      throw new BadRequestError('NESTING_TOO_DEEP', `a path may open at most ${MAX_LEVELS} directories`)
    const { readMap, maxPathBytes } = this.options
    this.bytes += directory.content.length
    // Before anything of it is read; one alone has a limit of its own.
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

/** The entry of a segment. None has that of a slash at the end, whatever the map says (`spec/http.md`). */
function entry(map: ReadonlyMap<string, string>, segment: string): string | undefined {
  return segment === '' ? undefined : map.get(segment)
}

/** A pointer as a map has it, siblings counted from where the directory itself stands. */
function absolute(text: string, { txid }: Outpoint): Parameters<typeof contentAt>[1] {
  try {
    const pointer = parsePointer(text)
    return pointer.kind === 'sibling' ? { kind: 'outpoint', outpoint: { txid, vout: pointer.vout } } : pointer
  } catch (error) {
    if (!(error instanceof PointerError)) throw error
    // Not the caller's fault, as it would be in the path.
    throw new NotFoundError('this entry of the directory is not a valid pointer')
  }
}

/**
 * Reads maps, and keeps those read last. By the hash of the body, which is the same for every directory with that body:
 * whether an outpoint is in the store was asked before.
 */
function mapReader(store: GraphReader, maxDirectoryBytes: number): ReadMap {
  // With what a body is refused for, so that a large wrong one is not read again for every request.
  const known = new LRUCache<string, ReadMapResult>({ maxSize: CACHED_BYTES })
  const underWay = new Map<string, Promise<ReadMapResult>>()
  const read = async (content: ContentSummary): Promise<ReadMapResult> => {
    const parse = async () => await readMap(await completeBody(store, content))
    const map = await (content.length > LONG_BYTES ? longDirectories.runExclusive(parse) : parse())
    known.set(content.sha256, map, { size: weightOf(map) })
    return map
  }
  return async (content) => {
    if (content.length > maxDirectoryBytes) {
      throw new NotFoundError(
        `a directory of more than ${maxDirectoryBytes} bytes is served raw only, without paths`,
      )
    }
    const { sha256 } = content
    let map = known.get(sha256)
    if (map === undefined) {
      const reading = underWay.get(sha256) ?? read(content).finally(() => underWay.delete(sha256))
      underWay.set(sha256, reading)
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

/** A body of a mebibyte may have a hundred thousand entries: others are served between. */
async function readMap(body: Uint8Array): Promise<ReadMapResult> {
  const map = new Map<string, string>()
  const slice = new TimeSlice()
  try {
    let read = 0
    for (const [name, pointer] of directoryEntries(body)) {
      map.set(name, pointer)
      if (++read % ENTRIES_A_LOOK === 0) await slice.yieldIfOver()
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
  if (body.length !== length) throw new Error(`the store has ${body.length} of the ${length} bytes of a body`)
  return body
}
