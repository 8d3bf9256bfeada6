import { FACT } from '../facts/log.js'
import type { AncestorQueue } from '../graph/ancestor-queue.js'
import type { Blocklist, BlocklistStore } from '../graph/blocklist.js'
import { type Dependency, dependency } from '../graph/dependencies.js'
import { LostConflictError, StoreUnavailableError, UnstableReadError } from '../graph/errors.js'
import type {
  CacheOptions,
  ContentReader,
  Interactions,
  RecordOptions,
  SightingsStore,
  StreamQuery,
  StreamSummary,
  StreamsReader,
} from '../graph/graph-store.js'
import type { HeldSubmissions, HostStore, Settings } from '../graph/host-store.js'
import type { AdmissionRecord, Block, TransactionRecord } from '../graph/records.js'
import type { Awaitable } from '../graph/yield-to-event-loop.js'
import type { HeaderStore } from '../protocol/header-store.js'
import { steadyTime } from '../protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Writer, Written } from '../writer/writer.js'
import { admissionsIn } from './admissions.js'
import { ancestorsIn, sharingEntries } from './ancestors.js'
import { blockedPage, readBlocklist } from './blocklist.js'
import { blocksIn } from './blocks.js'
import { contentIn } from './content.js'
import { frontierIn } from './frontier.js'
import { headersIn } from './headers.js'
import { attributesIn, listingsIn } from './listings.js'
import { metadataIn } from './metadata.js'
import { namesIn } from './names.js'
import { ordinalsIn } from './ordinals.js'
import type { Reader, Snapshot } from './reader.js'
import { heldIn, interactionsIn, settingsIn, sightingsIn } from './state.js'
import { streamsIn } from './streams.js'
import { transactionsIn } from './transactions.js'

export interface FactStoreOptions {
  reader: Reader
  writer: Writer
  /** Called after every reorganisation with how many transactions became inactive or active again. */
  onReorg?: ((transactions: number) => void) | undefined
  /** Keeps whole answers; if missing, each is read. */
  answers?: AnswerMemory | undefined
  /** Reads bodies; by default, as the reader finds them. */
  contentOf?: ((content: ContentReader) => ContentReader) | undefined
  /** Called once something was blocked, unblocked or removed: bodies in memory may be gone for good. */
  onBlocked?: (() => void) | undefined
}

/** Keeps answers in memory until something changes that they follow from. */
export interface AnswerMemory {
  get(key: string): unknown
  /** @param answer.commits How many commits were made before it was read, at least; undefined if some were made meanwhile. */
  keep(
    key: string,
    answer: {
      value: unknown
      commits: number | undefined
      dependsOn: readonly Dependency[]
      /** In bytes, about. */
      weight: number
    },
  ): void
}

/** The ports of a host over the facts of a log: reads from its index, and writes by the one writer. */
export class FactStore implements HostStore {
  readonly transactions
  readonly blocks
  readonly frontier
  readonly names
  readonly ordinals
  readonly metadata
  readonly attributes
  readonly content
  readonly streams
  readonly listings
  readonly admissions
  readonly settings: Settings
  readonly interactions: Interactions
  readonly headers: HeaderStore
  readonly sightings: SightingsStore
  readonly blocklist: BlocklistStore
  readonly ancestors: AncestorQueue
  readonly held: HeldSubmissions
  /** Answers from memory, and reads of what may be in memory, since the start. */
  readonly answersUse = { hits: 0, misses: 0 }
  private blocked: { list: Blocklist; commits: number } | undefined

  constructor(private readonly options: FactStoreOptions) {
    const { reader, writer, contentOf = (content) => content } = options
    this.transactions = transactionsIn(reader)
    this.blocks = blocksIn(reader)
    this.frontier = frontierIn(reader)
    this.names = namesIn(reader)
    this.ordinals = ordinalsIn(reader)
    this.metadata = metadataIn(reader)
    this.attributes = attributesIn(reader)
    this.content = contentOf(contentIn(reader))
    const streams = streamsIn(reader)
    this.streams = { ...streams, summary: (query: StreamQuery) => this.summaryOf(streams, query) }
    this.listings = listingsIn(reader)
    this.admissions = admissionsIn(reader)
    this.settings = {
      ...settingsIn(reader),
      set: async (name, value, from) => {
        await this.after(writer.setting(name, value, from))
      },
    }
    this.interactions = {
      ...interactionsIn(reader),
      setLast: (host, topic, since) => this.after(writer.note('interaction', host, topic, since)),
    }
    this.headers = {
      ...headersIn(reader),
      replaceFrom: async (change) => (await this.after(writer.change('replaceHeaders', change))).result,
      addBelow: async (change) => (await this.after(writer.change('addHeadersBelow', change))).result,
      clear: async () => {
        await this.after(writer.change('clearHeaders'))
      },
    }
    this.sightings = this.sightingsRole()
    this.blocklist = this.blocklistRole()
    this.ancestors = {
      ...ancestorsIn(reader),
      postpone: async (entry, { due }) => {
        const { hole, tries, fetched } = entry
        // Whatever waits in line was there before it.
        const attempt = { hole, due, place: steadyTime(), tries, ...fetched }
        await this.after(writer.note('postpone', await sharingEntries(reader, entry), attempt))
      },
    }
    this.held = {
      ...heldIn(reader),
      hold: (submission, limits) => this.after(writer.note('hold', submission, limits)),
      release: (txid) => this.after(writer.note('release', txid)),
    }
  }

  async ping(): Promise<void> {
    const { failure } = this.options.writer
    if (failure !== undefined) throw failure
    this.options.reader.single((sql) => sql.get('select 1'))
  }

  async isEmpty(): Promise<boolean> {
    return this.options.reader.answer((sql) =>
      [ANY_STORED, ANY_PENDING].every((statement) => sql.get(statement) === undefined),
    )
  }

  /**
   * Stores transactions: everything else follows from them.
   *
   * @throws WriterBusyError if it waited longer than `options.place.patience`.
   */
  async record(
    transactions: readonly TransactionRecord[],
    options: RecordOptions = {},
  ): Promise<AdmissionRecord[]> {
    const { subjects, keepLost, place, onRefusal } = options
    const asked = { ...(subjects && { subjects }), ...(keepLost && { keepLost }) }
    const recorded = await this.after(this.options.writer.record(transactions, asked, place))
    for (const refusal of recorded.refused) onRefusal?.(refusal)
    for (const { txid, reason } of recorded.lost) throw new LostConflictError(txid, reason)
    return recorded.admitted
  }

  async disprove(block: Block): Promise<number> {
    return (await this.after(this.options.writer.change('disprove', block))).result
  }

  async evict(outpoint: Outpoint): Promise<void> {
    await this.after(this.options.writer.change('evict', outpoint, steadyTime()))
  }

  /**
   * Reads from one snapshot what waits for nothing but reads, as most answers do. A longer one is read again if a
   * reorganisation came between.
   */
  consistent<Answer>(read: () => Awaitable<Answer>, cache?: CacheOptions<Answer>): Awaitable<Answer> {
    if (cache === undefined || this.options.answers === undefined) return this.read(read)
    const known = this.cachedAnswer(cache.key)
    if (known !== undefined) return known as Answer
    this.answersUse.misses++
    return this.read(read, cache)
  }

  cachedAnswer(key: string): unknown {
    const known = this.options.answers?.get(key)
    if (known !== undefined) this.answersUse.hits++
    return known
  }

  private read<Answer>(read: () => Awaitable<Answer>, cache?: CacheOptions<Answer>): Awaitable<Answer> {
    const { reader } = this.options
    const snapshot = reader.hold()
    let answer: Awaitable<Answer>
    try {
      answer = read()
    } catch (error) {
      reader.letGo(snapshot)
      throw error
    }
    if (answer instanceof Promise) return this.readWaiting(read, { snapshot, answer, cache })
    reader.letGo(snapshot)
    this.keep(answer, cache, snapshot.commits)
    return answer
  }

  /** Awaits an answer that was not synchronous, and reads it again if a reorganisation happened meanwhile. */
  private async readWaiting<Answer>(
    read: () => Awaitable<Answer>,
    first: { snapshot: Snapshot; answer: Promise<Answer>; cache: CacheOptions<Answer> | undefined },
  ): Promise<Answer> {
    const { reader } = this.options
    let { snapshot, answer: reading } = first
    for (let tried = 1; ; tried++) {
      reader.holdWhileReading(snapshot)
      let answer: Answer | undefined
      let failed: { error: unknown } | undefined
      try {
        answer = await reading
      } catch (error) {
        // That nothing can be read is no matter of two states, and asking once more would take as long.
        if (error instanceof StoreUnavailableError) throw error
        failed = { error }
      }
      const isOvertaken = !reader.letGo(snapshot) && !reader.isLatest(snapshot)
      // An error, too, may come from a mix of two states.
      if (!isOvertaken || snapshot.reorgs === reader.reorgs) {
        if (failed !== undefined) throw failed.error
        this.keep(answer as Answer, first.cache, isOvertaken ? undefined : snapshot.commits)
        return answer as Answer
      }
      if (tried === TRIES)
        throw new UnstableReadError(
          `the read was retried ${TRIES} times because the chain kept reorganising; try again`,
        )
      snapshot = reader.hold()
      reading = new Promise((resolve) => resolve(read()))
    }
  }

  private keep<Answer>(
    value: Answer,
    cache: CacheOptions<Answer> | undefined,
    commits: number | undefined,
  ): void {
    if (cache === undefined || value === undefined) return
    const { key, dependsOn, weightOf } = cache
    this.options.answers?.keep(key, { value, commits, dependsOn: dependsOn(value), weight: weightOf(value) })
  }

  /** Each request for a range of a stream asks for it, and each of its chunks is a row. */
  private async summaryOf(streams: StreamsReader, query: StreamQuery): Promise<StreamSummary | undefined> {
    return await this.consistent(() => streams.summary(query), {
      key: `stream ${query.chunkTypes} ${formatOutpoint(query.outpoint)}`,
      dependsOn: () => [dependency.all],
      weightOf: (stream) => SEGMENT_WEIGHT * (stream?.segments.length ?? 0),
    })
  }

  private sightingsRole(): SightingsStore {
    const { reader, writer } = this.options
    return {
      ...sightingsIn(reader),
      record: async (records) => (await this.after(writer.change('sightings', records))).result,
    }
  }

  private blocklistRole(): BlocklistStore {
    const { reader, writer } = this.options
    return {
      page: (query) => blockedPage(reader, query),
      list: () => this.listBlocked(),
      add: async (record) => (await this.after(writer.change('block', record))).result,
      remove: async (subject) => (await this.after(writer.change('unblock', subject))).result,
    }
  }

  /** The blocklist is read again if another commit has changed it. */
  private listBlocked(): Blocklist {
    const { reader } = this.options
    const { commits } = reader
    let { blocked } = this
    if (blocked?.commits === commits) return blocked.list
    const version = reader.count('blocks')
    if (blocked?.list.version !== version) {
      if (blocked !== undefined) this.options.onBlocked?.()
      blocked = { list: reader.single(readBlocklist), commits }
      blocked.list.version = version
    }
    this.blocked = { ...blocked, commits }
    return blocked.list
  }

  /** What was written is seen by every read from now on. */
  private async after<Result>(write: Promise<Result>): Promise<Result> {
    const written = await write
    this.options.reader.refresh()
    const { reorganised = 0 } = (written ?? {}) as Partial<Written>
    if (reorganised > 0) this.options.onReorg?.(reorganised)
    return written
  }
}

/** How often a long answer is read again that reorganisations come between. */
const TRIES = 20

/** What a segment of a stream takes in memory, about, in bytes. */
const SEGMENT_WEIGHT = 256

// Of the log: the index may have to be derived first.
const ANY_STORED = `select 1 from log.log where kind = ${FACT.transaction} limit 1`
const ANY_PENDING = 'select 1 from log.pending limit 1'
