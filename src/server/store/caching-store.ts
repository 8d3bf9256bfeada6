import { LRUCache } from 'lru-cache'
import { type Logger, pino } from 'pino'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import type { BlocklistStore } from '../../../backend/src/graph/blocklist.js'
import {
  type Changes,
  changesOfWrite,
  type Dependency,
  dependenciesOfOutput,
  dependenciesOfStep,
  dependency,
  nameIn,
} from '../../../backend/src/graph/dependencies.js'
import {
  type Backlog,
  type ByteRange,
  type CacheOptions,
  CHUNK_BYTES,
  type ContentReader,
  type MetadataReader,
  type NamesReader,
  type OrdinalsReader,
  type RecordOptions,
  SHORT_BODY,
  type SightingsStore,
  type StreamsReader,
  type TransactionsReader,
} from '../../../backend/src/graph/graph-store.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import type { MapState } from '../../../backend/src/graph/map-merge.js'
import { optimisticRead } from '../../../backend/src/graph/optimistic-read.js'
import type { AdmissionRecord, Block, GraphRecords } from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { contentBy } from '../../../backend/src/storage/read/read-blobs.js'
import { AnswerCache, type CachedAnswer } from './answer-cache.js'
import { ChangePoller } from './change-poller.js'

const MiB = 1024 * 1024
/** The shares of the memory that are for short bodies, and for chunks of longer ones; the rest is for answers. */
const SHORT_BODIES = 1 / 4
const CHUNKS = 1 / 4
/** How many chunks of a longer body may be in memory: those of the first mebibyte. */
const CHUNKS_OF_BODY = 4
/** Of how many chunks it is known that they were read once. */
const READ_ONCE = 1000
/** The weight of an answer without MAP or segments, and of a segment. */
const USUAL_WEIGHT = 1024
const SEGMENT_WEIGHT = 256
/** The weight of a metadata text besides its characters: a stranger may have written ten thousand empty ones. */
const TEXT_WEIGHT = 100

export interface CachingStoreOptions {
  store: HostStore
  /** The most memory that cached answers and bodies take, in bytes: strangers decide how much MAP an ordinal has. */
  maxBytes?: number
  /** Whether other processes may write to the database. */
  isShared?: boolean
  onWrite?: () => Promise<void>
  logger?: Logger
}

/**
 * A store that caches the answers which the gateway needs again and again. A write removes those that depend on what it
 * changes, and all of them if it reorganises or blocks something. If other processes share the database, it polls for their
 * writes, which remove all, and cached answers are used only after a fresh poll. Bodies are cached longer: a hash identifies
 * them.
 */
export class CachingStore implements HostStore {
  readonly transactions: TransactionsReader
  readonly names: NamesReader
  readonly ordinals: OrdinalsReader
  readonly metadata: MetadataReader
  readonly content: ContentReader
  readonly streams: StreamsReader
  readonly blocklist: BlocklistStore
  readonly backlog: Backlog
  readonly sightings: SightingsStore
  readonly attributes
  readonly listings
  readonly blocks
  readonly frontier
  readonly admissions
  readonly interactions
  readonly settings
  readonly headers
  /** Answers from memory, and reads, since the start. */
  readonly caches = { answers: { hits: 0, misses: 0 }, bodies: { hits: 0, misses: 0 } }
  private readonly answers: AnswerCache
  private readonly shortBodies: LRUCache<string, Uint8Array>
  /** Of longer bodies. */
  private readonly chunks: LRUCache<string, Uint8Array>
  /** The keys of chunks that were read once, and are cached when they are read again: most long bodies are not. */
  private readonly readOnce = new LRUCache<string, true>({ max: READ_ONCE })
  /** How many writes there were: an answer that a write may have overtaken is not cached. */
  private writes = 0
  /** How many are running: until they end, a cached answer that depends on anything may be out of date. */
  private running = 0
  /** How many of them remove all answers. */
  private clearing = 0
  /** The reorganisation count that the cached answers belong to. */
  private reorgs = 0
  /** Polls for the writes of others; undefined if there are none. */
  private readonly poller: ChangePoller | undefined

  constructor(private readonly options: CachingStoreOptions) {
    const { store, isShared = false, onWrite, logger = pino({ level: 'silent' }) } = options
    const { maxBytes = 64 * MiB } = options
    this.answers = new AnswerCache(maxBytes * (1 - SHORT_BODIES - CHUNKS))
    const sizeCalculation = ({ length }: Uint8Array): number => Math.max(length, 1)
    this.shortBodies = new LRUCache({ maxSize: Math.floor(maxBytes * SHORT_BODIES), sizeCalculation })
    this.chunks = new LRUCache({ maxSize: Math.floor(maxBytes * CHUNKS), sizeCalculation })
    if (isShared) {
      const forget = async (): Promise<void> => {
        this.forgetAnswers()
        await this.blocklist.refresh()
        await onWrite?.()
      }
      this.poller = new ChangePoller({ writes: () => store.writeCount(), onWrite: forget, logger })
    }
    const { transactions, names, ordinals, metadata, content, streams, blocklist, backlog, sightings } = store
    this.attributes = store.attributes
    this.listings = store.listings
    this.blocks = store.blocks
    this.frontier = store.frontier
    this.admissions = store.admissions
    this.interactions = store.interactions
    this.settings = store.settings
    this.headers = store.headers
    this.transactions = replacing(transactions, {
      heightOf: (txid) =>
        this.cached(`height ${txid}`, () => transactions.heightOf(txid), {
          dependsOn: () => [dependency.proof(txid)],
        }),
      spenderOf: (outpoint) =>
        this.cachedAbsence(`spender ${formatOutpoint(outpoint)}`, () => transactions.spenderOf(outpoint), {
          dependsOn: () => [dependency.spend(outpoint)],
        }),
    })
    this.names = replacing(names, {
      // The blocklist filter asks about one or two with each read. Strangers make up longer lists: those are not cached.
      genuineOrigins: (outpoints) => {
        if (outpoints.length > 2) return names.genuineOrigins(outpoints)
        return this.cached(`origins ${outpoints.map(formatOutpoint)}`, () => names.genuineOrigins(outpoints))
      },
    })
    this.ordinals = replacing(ordinals, {
      output: (outpoint) =>
        this.cached(`output ${formatOutpoint(outpoint)}`, () => ordinals.output(outpoint), {
          dependsOn: (output) =>
            output?.unsettled ? [dependency.lineages] : output ? dependenciesOfOutput(output) : [],
        }),
      at: (outpoint, sequence) =>
        this.cached(`${sequence} ${formatOutpoint(outpoint)}`, () => ordinals.at(outpoint, sequence), {
          dependsOn: (step) => (step ? dependenciesOfStep(step) : []),
        }),
      currentOutput: (outpoint) =>
        this.cachedAbsence(`current ${formatOutpoint(outpoint)}`, () => ordinals.currentOutput(outpoint)),
    })
    this.metadata = {
      own: (outpoint) =>
        this.cached(`own ${formatOutpoint(outpoint)}`, () => metadata.own(outpoint), {
          dependsOn: () => [],
          weightOf: mapWeight,
        }),
      merged: (outpoint, limit) => {
        const key = `merged ${limit} ${formatOutpoint(outpoint)}`
        return this.cached(key, () => metadata.merged(outpoint, limit), {
          dependsOn: () => [dependency.lineages],
          weightOf: mapWeight,
        })
      },
    }
    const cached = contentBy((sha256, position) => {
      const key = position === 0 ? sha256 : `${sha256} ${position}`
      const known = this.chunks.get(key) ?? this.shortBodies.get(key)
      this.caches.bodies[known === undefined ? 'misses' : 'hits']++
      return known ?? this.readChunk(content, { sha256, position, key })
    })
    this.content = {
      chunk: cached.chunk,
      chunks: (sha256, range) => chunksOf({ cached, content }, sha256, range),
    }
    this.streams = replacing(streams, {
      summary: (query) =>
        this.cached(
          `stream ${query.chunkTypes} ${formatOutpoint(query.outpoint)}`,
          () => streams.summary(query),
          { weightOf: (stream) => USUAL_WEIGHT + SEGMENT_WEIGHT * (stream?.segments.length ?? 0) },
        ),
    })
    this.blocklist = replacing(blocklist, {
      list: () => (this.isFresh ? blocklist.list() : blocklist.refresh().then(() => blocklist.list())),
      add: (record) => this.writing(() => blocklist.add(record)),
      remove: (subject) => this.writing(() => blocklist.remove(subject)),
      refresh: async () => {
        const before = await blocklist.list()
        await blocklist.refresh()
        // Cached responses are sent without asking the list.
        if (!(await blocklist.list()).equals(before)) this.forgetAnswers()
      },
    })
    this.sightings = replacing(sightings, {
      record: (records, options) => {
        let derived: readonly Dependency[] = []
        const onDerived: RecordOptions['onDerived'] = (changed) => {
          derived = changed
          options?.onDerived?.(changed)
        }
        return this.writing(
          () => sightings.record(records, { onDerived }),
          ({ changed }) => (changed.length === 0 ? [] : [dependency.all, ...derived]),
        )
      },
    })
    this.backlog = replacing(backlog, {
      workOff: () =>
        this.writing(
          () => backlog.workOff(),
          (wasBehind) => (wasBehind ? undefined : []),
        ),
    })
  }

  get store(): HostStore {
    return this.options.store
  }

  async open(): Promise<void> {
    await this.store.open()
    this.reorgs = await this.store.reorgCount()
    await this.poller?.start()
  }

  async close(): Promise<void> {
    await this.poller?.stop()
  }

  deriveBy(admission: AdmissionOptions): void {
    this.store.deriveBy(admission)
  }

  ping(): Promise<void> {
    return this.store.ping()
  }

  isEmpty(): Promise<boolean> {
    return this.store.isEmpty()
  }

  writeCount(): Promise<number> {
    return this.store.writeCount()
  }

  record(records: GraphRecords, options?: RecordOptions): Promise<AdmissionRecord[]> {
    // A rebuild has emptied the index before.
    if (options?.again) return this.writing(() => this.store.record(records, options))
    let derived: readonly Dependency[] = []
    const onDerived: RecordOptions['onDerived'] = (changed) => {
      derived = changed
      options?.onDerived?.(changed)
    }
    return this.writing(
      () => this.store.record(records, { ...options, onDerived }),
      (admitted) => changesOfWrite(records, { admitted, derived }),
    )
  }

  disprove(block: Block): Promise<number> {
    return this.writing(() => this.store.disprove(block))
  }

  evict(outpoint: Outpoint): Promise<void> {
    return this.writing(() => this.store.evict(outpoint))
  }

  /**
   * Runs a write, in this thread or another. Until it ends, no cached answer is used that it may outdate.
   *
   * @param changesOf What a write with this result has changed; undefined if that is not known. If missing, the write may
   * change everything, as one that blocks something does.
   */
  async writing<Result>(
    write: () => Promise<Result>,
    changesOf?: (result: Result) => Changes,
  ): Promise<Result> {
    const clears = changesOf === undefined ? 1 : 0
    this.running++
    this.clearing += clears
    let changed: Changes
    try {
      const result = await write()
      changed = changesOf?.(result)
      return result
    } finally {
      try {
        if (clears) this.forgetAnswers()
        await this.forgetChanged(changed)
      } finally {
        this.running--
        this.clearing -= clears
      }
    }
  }

  consistent<Answer>(read: () => Promise<Answer>, cache?: CacheOptions<Answer>): Promise<Answer> | Answer {
    const readAll = (): Promise<Answer> => optimisticRead(read, () => this.reorgCount())
    if (cache === undefined) return readAll()
    const { key, dependsOn, weightOf } = cache
    const known = this.complete(key)
    if (known !== undefined) return known.value as Answer
    return this.read(key, readAll, {
      dependsOn,
      weightOf: (answer) => USUAL_WEIGHT + key.length + weightOf(answer),
    })
  }

  cachedAnswer(key: string): unknown {
    return this.complete(key)?.value
  }

  async reorgCount(): Promise<number> {
    const isAlone = this.poller === undefined
    if (isAlone && this.running === 0) return this.reorgs
    const reorgs = await this.store.reorgCount()
    if (!isAlone) {
      // The cached answers are from before.
      if (reorgs !== this.reorgs) this.forgetAnswers()
      this.reorgs = reorgs
    }
    return reorgs
  }

  private forgetAnswers(): void {
    this.writes++
    this.answers.clear()
  }

  private async forgetChanged(changed: Changes): Promise<void> {
    this.writes++
    let reorgs: number | undefined
    let isBlocked = true
    try {
      reorgs = await this.store.reorgCount()
      isBlocked = await this.mayBlock(changed)
    } finally {
      if (reorgs !== this.reorgs || isBlocked) this.answers.clear()
      else if (changed === undefined) this.answers.changeAll()
      else this.answers.change(changed)
    }
    this.reorgs = reorgs
  }

  /**
   * Whether a write may have made a stored output the origin of a blocked name, with which it is blocked. Answers about it depend
   * on nothing that says so.
   */
  private async mayBlock(changed: Changes): Promise<boolean> {
    const list = await this.store.blocklist.list()
    if (!list.hasAny('name')) return false
    return changed === undefined || changed.some((each) => list.has('name', nameIn(each) ?? ''))
  }

  private get isFresh(): boolean {
    return this.poller?.isFresh ?? true
  }

  private async readChunk(
    content: ContentReader,
    { sha256, position, key }: { sha256: string; position: number; key: string },
  ): Promise<Uint8Array | undefined> {
    const chunk = await content.chunk(sha256, position)
    if (chunk === undefined) return undefined
    if (position === 0 && chunk.length <= SHORT_BODY) this.shortBodies.set(key, chunk)
    else if (position < CHUNKS_OF_BODY) {
      if (this.readOnce.delete(key)) this.chunks.set(key, chunk)
      else this.readOnce.set(key, true)
    }
    return chunk
  }

  private cached<Value>(
    key: string,
    read: () => Promise<Value>,
    options?: Partial<CacheRules<Value>>,
  ): Promise<Value> {
    const known = this.running > 0 ? undefined : this.known(key)
    return known === undefined ? this.read(key, read, options) : (known.promise as Promise<Value>)
  }

  /** As {@link cached}, where it is cached, too, that there is none. */
  private async cachedAbsence<Value>(
    key: string,
    read: () => Promise<Value | undefined>,
    options?: Pick<CacheRules<Value | undefined>, 'dependsOn'>,
  ): Promise<Value | undefined> {
    const { value } = await this.cached(
      key,
      async () => ({ value: await read() }),
      options && { dependsOn: ({ value }) => options.dependsOn(value) },
    )
    return value
  }

  /** A whole answer: one that depends on nothing is as true while something is written. */
  private complete(key: string): CachedAnswer | undefined {
    const known = this.clearing > 0 ? undefined : this.known(key)
    return this.running > 0 && known !== undefined && known.dependsOn.length > 0 ? undefined : known
  }

  private known(key: string): CachedAnswer | undefined {
    if (!this.isFresh) return undefined
    const known = this.answers.get(key)
    if (known !== undefined) this.caches.answers.hits++
    return known
  }

  private read<Value>(
    key: string,
    read: () => Promise<Value>,
    { dependsOn = () => [dependency.all], weightOf = () => USUAL_WEIGHT }: Partial<CacheRules<Value>> = {},
  ): Promise<Value> {
    if (this.running > 0 || !this.isFresh) return read()
    this.caches.answers.misses++
    const { writes } = this
    const promise = read()
    void promise.then(
      (value) => {
        // Strangers can ask for any number of missing things.
        if (value !== undefined && writes === this.writes && this.running === 0)
          this.answers.set(key, { promise, value, dependsOn: dependsOn(value), weight: weightOf(value) })
      },
      // The caller gets the error; nothing is cached.
      () => {},
    )
    return promise
  }
}

interface CacheRules<Value> {
  /** By default, on anything. */
  dependsOn: (value: Value) => readonly Dependency[]
  weightOf: (value: Value) => number
}

/** Chunks that are cached, and what comes after them as the store reads it: it may have other bounds. */
async function* chunksOf(
  { cached, content }: Record<'cached' | 'content', ContentReader>,
  sha256: string,
  { from, length }: ByteRange = { from: 0, length: Number.POSITIVE_INFINITY },
): AsyncGenerator<Uint8Array> {
  const [end, border] = [from + length, CHUNKS_OF_BODY * CHUNK_BYTES]
  if (from < border) yield* cached.chunks(sha256, { from, length: Math.min(end, border) - from })
  const rest = Math.max(from, border)
  if (end > rest) yield* content.chunks(sha256, { from: rest, length: end - rest })
}

/** A role with some of its methods replaced. */
function replacing<Role extends object>(role: Role, methods: Partial<Role>): Role {
  return Object.assign(Object.create(role) as Role, methods)
}

function mapWeight(map: MapState | undefined): number {
  let weight = USUAL_WEIGHT
  for (const [key, value] of map ?? []) {
    weight += TEXT_WEIGHT + key.length
    for (const text of typeof value === 'string' ? [value] : value) weight += TEXT_WEIGHT + text.length
  }
  return weight
}
