import { Mutex } from 'async-mutex'
import type { Response } from 'express'
import { LRUCache } from 'lru-cache'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import {
  type Awaitable,
  inSlices,
  TimeSlice,
  yieldToEventLoop,
} from '../../../backend/src/graph/yield-to-event-loop.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import {
  contentPath,
  type Directories,
  DirectoryError,
  type DirectoryMap,
  directoryEntries,
  type Found,
  type Link,
  MAX_LINK_BYTES,
  type PathQuestion,
  sitePath,
} from '../../../backend/src/protocol/directory.js'
import { type Outpoint, readPointer } from '../../../backend/src/protocol/outpoint.js'
import { PATCH_TYPE } from '../../../backend/src/protocol/patch.js'
import {
  MAX_REDIRECTS_BYTES,
  type RedirectRule,
  RedirectsError,
  readRedirects,
  redirectsTooLarge,
} from '../../../backend/src/protocol/redirects.js'
import { atOnce, type Steps } from '../../../backend/src/protocol/steps.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { countMilliseconds } from '../http/long-read.js'
import { shortOf } from '../http/send-body.js'
import { type ContentOutput, contentAt, type ShownContent } from './content-root.js'

/** The most directories that one path may open, including the root (`docs/spec/http.md`, Content). */
const MAX_LEVELS = 8

/** The approximate memory of all cached maps and rules, and of an entry, a rule or a part of one beyond its characters. */
const CACHED_BYTES = 32 * 1024 * 1024
const ENTRY_BYTES = 100

/** A directory with more bytes is long: those are read one at a time. */
const LONG_BYTES = 64 * 1024
const ENTRIES_PER_STEP = 500

/** Finds files by their paths in directories (`docs/spec/http.md`, Content). */
export class FileFinder {
  private readonly types: ReadonlySet<string>
  private readonly maps: DirectoryMaps

  constructor(
    private readonly options: Pick<GatewayParts, 'store' | 'profile' | 'maxDirectoryBytes'> & {
      patches: PatchReader
    },
  ) {
    this.types = new Set(options.profile.directoryContentTypes)
    this.maps = new DirectoryMaps(options.store, options.maxDirectoryBytes)
  }

  /**
   * @param isSite Whether the path is on a content host, where fallbacks apply besides the entry itself.
   * @throws AnswerError if a path leads nowhere (`NOT_FOUND`), or through more than 8 directories (`NESTING_TOO_DEEP`), and for
   * unreadable rules (`BAD_REDIRECTS`); LongRead for anything long that was not read ahead.
   */
  find(
    question: PathQuestion<ContentOutput>,
    { isSite, read }: { isSite: boolean; read?: Ahead | undefined },
  ): Exclude<Found<ContentOutput>, { kind: 'missing' }> {
    const { store, patches, maxDirectoryBytes } = this.options
    const options = {
      ...{ store, patches, types: this.types, maps: this.maps, raw: question.raw, read },
      maxPathBytes: 2 * maxDirectoryBytes,
    }
    const found = isSite
      ? sitePath(() => new Walk(options), question)
      : contentPath(new Walk(options), question)
    if (found.kind === 'missing') throw new AnswerError('NOT_FOUND', found.reason)
    return found
  }

  /** Whether a root is a directory with an entry of some name. @throws as {@link find}. */
  has(root: ContentOutput, name: string, read: Ahead | undefined): boolean {
    const { content } = shownBy(this.options.patches, root, read)
    return this.types.has(content.contentType) && this.maps.read(content, read).has(name)
  }
}

export interface PatchReader {
  shown(output: ContentOutput, ahead: Ahead | undefined): ContentOutput
}

/** The output with the content that it shows. */
export function shownBy(
  patches: PatchReader,
  output: ContentOutput,
  ahead: Ahead | undefined,
): ContentOutput {
  return output.content.contentType === PATCH_TYPE ? patches.shown(output, ahead) : output
}

/** One walk through directories. It counts those it opens, which ends cycles of maps. */
class Walk implements Directories<ContentOutput> {
  private levels = 0
  private bytes = 0

  constructor(
    private readonly options: {
      store: GraphReads
      patches: PatchReader
      types: ReadonlySet<string>
      maps: DirectoryMaps
      raw: boolean
      read: Ahead | undefined
      maxPathBytes: number
    },
  ) {}

  isDirectory({ content }: ContentOutput): boolean {
    return this.options.types.has(content.contentType)
  }

  open(directory: ContentOutput): DirectoryMap {
    if (++this.levels > MAX_LEVELS) throw nestingTooDeep()
    const { maps, read, maxPathBytes } = this.options
    this.bytes += directory.content.length
    // Before anything is read. A single directory has its own limit.
    if (this.levels > 1 && this.bytes > maxPathBytes)
      throw new AnswerError(
        'NOT_FOUND',
        `the directories on this path have more than ${maxPathBytes} bytes in total`,
      )
    return maps.read(directory.content, read)
  }

  load(directory: ContentOutput, pointer: string, isLast: boolean): ContentOutput {
    const { store, patches, raw, read } = this.options
    const target = contentAt(store, absolute(pointer, directory.outpoint))
    if (target === undefined) {
      throw new AnswerError('NOT_FOUND', 'this store does not have the content that the directory points to')
    }
    return raw && isLast ? target : shownBy(patches, target, read)
  }

  link({ content }: ContentOutput): Uint8Array | undefined {
    if (++this.levels > MAX_LEVELS) throw nestingTooDeep()
    return content.length > MAX_LINK_BYTES ? undefined : completeBody(this.options.store, content)
  }

  redirects({ content }: ContentOutput): readonly RedirectRule[] {
    return this.options.maps.rules(content)
  }
}

function nestingTooDeep(): AnswerError {
  return new AnswerError('NESTING_TOO_DEEP', 'directory nesting too deep')
}

/** Resolves a pointer of a map; siblings are in the transaction of the directory. */
function absolute(text: string, { txid }: Outpoint): Parameters<typeof contentAt>[1] {
  const pointer = readPointer(text)
  // Unlike an invalid pointer in the path, this is not the client's error.
  if (pointer === undefined)
    throw new AnswerError('NOT_FOUND', 'this entry of the directory is not a valid pointer')
  return pointer.kind === 'sibling' ? { kind: 'outpoint', outpoint: { txid, vout: pointer.vout } } : pointer
}

/**
 * Reads maps and rules, and caches them by the hash of the body, which all outputs with that body share. The caller has checked
 * that the store has the outpoint itself.
 */
class DirectoryMaps {
  // Errors are cached too, so that a large invalid body is not read again for every request.
  private readonly cached = new LRUCache<string, ReadMapResult | ReadRules>({ maxSize: CACHED_BYTES })
  private readonly long = new LongReads()

  constructor(
    private readonly store: GraphReads,
    private readonly maxDirectoryBytes: number,
  ) {}

  /**
   * @param known Long reads that are done for this request.
   * @throws LongRead; AnswerError if the directory can only be served as inscribed.
   */
  read(content: ShownContent, known?: Ahead): DirectoryMap {
    const { maxDirectoryBytes } = this
    if (content.length > maxDirectoryBytes) {
      throw new AnswerError(
        'NOT_FOUND',
        `a directory of more than ${maxDirectoryBytes} bytes is served raw only, without paths`,
      )
    }
    // The same bytes are read differently if their type is another.
    const key = `${content.contentType} ${content.sha256}`
    let map = (this.cached.get(key) ?? known?.get(key)) as ReadMapResult | undefined
    if (map === undefined && content.length > LONG_BYTES) {
      // Making the content with a patch may be a long read as well, and comes first.
      const made = content.made?.bytes()
      const read = () => this.reading(key, content.contentType, made ?? completeBody(this.store, content))
      return this.long.await(key, read)
    }
    map ??= atOnce(this.reading(key, content.contentType, completeBody(this.store, content)))
    if (map instanceof DirectoryError) {
      const { message, data } = map
      if (data !== undefined)
        throw new AnswerError('BAD_DIRECTORY', `not a binary directory: ${message}`, { data })
      throw new AnswerError('NOT_FOUND', `this directory is served raw only, without paths: ${map.message}`)
    }
    return map
  }

  /** The rules of a site. @throws RedirectsError */
  rules(content: ShownContent): readonly RedirectRule[] {
    // The same bytes may be a directory as well.
    const key = `rules ${content.sha256}`
    const known = this.cached.get(key) as ReadRules | undefined
    const rules = known ?? this.readRules(content)
    if (known === undefined) this.cached.set(key, rules, { size: weightOfRules(rules, content) })
    if (rules instanceof RedirectsError) throw rules
    return rules
  }

  private readRules(content: ShownContent): ReadRules {
    try {
      if (content.length > MAX_REDIRECTS_BYTES) throw redirectsTooLarge()
      return readRedirects(completeBody(this.store, content))
    } catch (error) {
      if (error instanceof RedirectsError) return error
      throw error
    }
  }

  /** In steps: a body of a mebibyte may have a hundred thousand entries. */
  private *reading(key: string, contentType: string, body: Uint8Array): Steps<ReadMapResult> {
    const entries = new Map<string, string | Link>()
    let map: ReadMapResult = entries
    try {
      for (const [name, entry] of directoryEntries(body, contentType)) {
        entries.set(name, entry)
        if (entries.size % ENTRIES_PER_STEP === 0) yield
      }
    } catch (error) {
      if (!(error instanceof DirectoryError)) throw error
      map = error
    }
    this.cached.set(key, map, { size: weightOf(map) })
    return map
  }
}

type ReadMapResult = DirectoryMap | DirectoryError
type ReadRules = readonly RedirectRule[] | RedirectsError

function weightOf(map: ReadMapResult): number {
  if (map instanceof DirectoryError) return ENTRY_BYTES
  let weight = ENTRY_BYTES
  for (const [name, entry] of map) weight += ENTRY_BYTES + name.length + entry.length
  return weight
}

/** @param body The body, since rules may hold on to its text. */
function weightOfRules(rules: ReadRules, body: ContentSummary): number {
  if (rules instanceof RedirectsError) return ENTRY_BYTES
  return rules.reduce(
    (sum, { from, to }) => sum + ENTRY_BYTES * (1 + from.length + to.length),
    ENTRY_BYTES + body.length,
  )
}

function completeBody(store: GraphReads, { sha256, length, made }: ShownContent): Uint8Array {
  if (made !== undefined) return made.bytes()
  const body = joinBytes([...store.content.chunks(sha256, { from: 0, length })])
  if (body.length !== length) throw shortOf({ sha256, length }, body.length)
  return body
}

/** The result of a long read, and the CPU time it took, in milliseconds. */
interface LongResult {
  value: unknown
  spent: number
}

/** Thrown if an answer needs something that takes several turns of the event loop to read. */
export class LongRead extends Error {
  constructor(
    readonly key: string,
    readonly read: () => Promise<LongResult>,
  ) {
    super(`${key} takes several turns of the event loop, and is not read yet`)
  }
}

/** The results of long reads for an answer, by key. */
export type Ahead = ReadonlyMap<string, unknown>

/** Makes an answer; after a LongRead it does that read, counts it for the client, and tries again. */
export function afterLong<Answer>(
  response: Response,
  answer: (ahead: Ahead | undefined) => Answer,
  ahead?: Ahead,
): Awaitable<Answer> {
  try {
    return answer(ahead)
  } catch (error) {
    if (!(error instanceof LongRead)) throw error
    const { key } = error
    return error.read().then(({ value, spent }) => {
      countMilliseconds(response, spent)
      return afterLong(response, answer, new Map(ahead).set(key, value))
    })
  }
}

/** Performs long reads one at a time, and once for all who want the same. */
export class LongReads {
  private readonly turn = new Mutex()
  private readonly inProgress = new Map<string, Promise<LongResult>>()

  /** @param most The most reads in progress or waiting; more are refused. Reads of clients that have left still count. */
  constructor(private readonly most = Number.POSITIVE_INFINITY) {}

  get isBusy(): boolean {
    return this.inProgress.size > 0
  }

  /** Aborts the answer; {@link afterLong} makes it again once this was read. */
  await(key: string, read: () => Steps<unknown>): never {
    throw new LongRead(key, () => {
      const known = this.inProgress.get(key)
      if (known !== undefined) return known
      if (this.inProgress.size >= this.most)
        throw new AnswerError('NOT_READY', `${this.most} long answers are being made; try again`)
      const reading = this.turn
        .runExclusive(async () => {
          // Not in the turn of the event loop that found it to be long.
          await yieldToEventLoop()
          const slice = new TimeSlice()
          const value = await inSlices(read(), slice)
          return { value, spent: slice.spent }
        })
        .finally(() => this.inProgress.delete(key))
      this.inProgress.set(key, reading)
      return reading
    })
  }

  isReading(key: string): boolean {
    return this.inProgress.has(key)
  }
}
