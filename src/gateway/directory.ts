import { LRUCache } from 'lru-cache'
import type { ContentReader } from '../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../backend/src/graph/records.js'
import { joinBytes } from '../../backend/src/protocol/bytes.js'
import { DirectoryError, readDirectory } from '../../backend/src/protocol/directory.js'
import { type Outpoint, PointerError, parsePointer } from '../../backend/src/protocol/outpoint.js'
import { type ContentOutput, type ContentStore, contentAt } from './content-output.js'
import { servedType } from './content-type.js'
import { BadRequestError, NotFoundError } from './error-response.js'

/** The entries with a meaning of their own (`service.md` 2.4). */
const DEFAULT = '.'
const INDEX = 'index.html'

/** How many directories one path may open, the root among them (`service.md` 8). */
const MAX_LEVELS = 8

/** Bytes of the bodies whose maps are kept. As a map, a body of tiny entries takes several times as much. */
const CACHED_BYTES = 4 * 1024 * 1024

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
}: {
  store: ContentStore
  directoryContentTypes: string[]
  /** Of a directory, all is read into memory. */
  maxDirectoryBytes: number
}): (question: PathQuestion) => Found | Promise<Found> {
  const types = new Set(directoryContentTypes.map((type) => type.toLowerCase()))
  const isDirectory = ({ content }: ContentOutput): boolean =>
    types.has(servedType(content.contentType).essence)
  const readMap = mapReader(store, maxDirectoryBytes)
  const findIn = async ({ root, segments, raw }: PathQuestion): Promise<Found> => {
    const walk = new Walk({ store, isDirectory, readMap })
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

  constructor(
    private readonly options: {
      store: ContentStore
      isDirectory: (output: ContentOutput) => boolean
      readMap: ReadMap
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
      if (pointer === undefined) throw new NotFoundError('a directory on this path has no such entry')
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
    if (found === undefined) throw new NotFoundError('this directory has no such entry, and no index')
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
    if (index === undefined) throw new NotFoundError('the default entry is a directory without one')
    return await this.load(target, index)
  }

  private async open(directory: ContentOutput): Promise<ReadonlyMap<string, string>> {
    this.levels++
    if (this.levels > MAX_LEVELS) throw new BadRequestError('NESTING_TOO_DEEP', 'directory nesting too deep')
    return await this.options.readMap(directory.content)
  }

  private async load(directory: ContentOutput, pointer: string): Promise<ContentOutput> {
    const target = await contentAt(this.options.store, absolute(pointer, directory.outpoint))
    if (target === undefined) {
      throw new NotFoundError('this store has no content where the directory points to')
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
    throw new NotFoundError('this entry of the directory is no pointer')
  }
}

/**
 * Reads maps, and keeps those read last. By the hash of the body, which is the same for every directory with that body:
 * whether an outpoint is in the store was asked before.
 */
function mapReader(store: ContentReader, maxDirectoryBytes: number): ReadMap {
  // With what a body is refused for, so that a large wrong one is not read again for every request.
  const known = new LRUCache<string, ReadonlyMap<string, string> | DirectoryError>({ maxSize: CACHED_BYTES })
  return async (content) => {
    if (content.length > maxDirectoryBytes) {
      throw new NotFoundError(
        `no paths lead into a directory of over ${maxDirectoryBytes} bytes: it is served raw only`,
      )
    }
    let map = known.get(content.sha256)
    if (map === undefined) {
      map = readMap(await wholeBody(store, content))
      known.set(content.sha256, map, { size: Math.max(content.length, 1) })
    }
    if (map instanceof DirectoryError) {
      throw new NotFoundError(`no paths lead into this directory, it is served raw only: ${map.message}`)
    }
    return map
  }
}

function readMap(body: Uint8Array): Map<string, string> | DirectoryError {
  try {
    return readDirectory(body)
  } catch (error) {
    if (error instanceof DirectoryError) return error
    throw error
  }
}

async function wholeBody(store: ContentReader, { sha256, length }: ContentSummary): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of store.contentPieces(sha256)) pieces.push(piece)
  const body = joinBytes(pieces)
  if (body.length !== length) throw new Error(`a body of ${length} bytes has ${body.length} in the store`)
  return body
}
