import type { Row, Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import { FACT } from '../facts/log.js'
import { type BlockedValue, blockedSubject, latestOf, register } from '../facts/registers.js'
import type { AncestorQueue } from '../graph/ancestor-queue.js'
import type { BlockedQuery, BlockedRecord, BlockedSubject, Blocklist } from '../graph/blocklist.js'
import type { RecordedSightings, Sighting, SightingRecord } from '../graph/conflict-resolution.js'
import { type Dependency, dependency } from '../graph/dependencies.js'
import { LostConflictError } from '../graph/errors.js'
import type { Settings } from '../graph/pinned-tree.js'
import type { Block, HeldSubmission, OrdinalStep, TransactionRecord } from '../graph/records.js'
import type { StreamQuery, StreamSummary } from '../graph/stream.js'
import type { Awaitable } from '../graph/yield-to-event-loop.js'
import { headerRange, readHeaders } from '../index/headers.js'
import type { ChainPosition } from '../protocol/block-rules.js'
import type { HeaderStore } from '../protocol/header-store.js'
import { steadyTime } from '../protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Door, RecordTransactions } from '../writer/door.js'
import type { DoorMethod, Place, Recorded, Writer, Written } from '../writer/writer.js'
import { Admissions } from './admissions.js'
import { ancestorsIn, sharingEntries } from './ancestors.js'
import { Anchors } from './anchors.js'
import { Blocks, Chain } from './chain.js'
import { Charts } from './charts.js'
import { type BodyMemory, Content } from './content.js'
import { Frontier } from './frontier.js'
import { BLOCKED, Guard, listBlocked } from './guard.js'
import { Listings } from './listings.js'
import { Metadata } from './metadata.js'
import { Names } from './names.js'
import { Ordinals } from './ordinals.js'
import { blobOf, hexOf, type Reader } from './reader.js'
import { Streams } from './streams.js'
import { Things } from './things.js'
import { Transactions } from './transactions.js'

/** How to cache an answer that depends only on the question and the store. */
export interface CacheOptions<Answer> {
  /** The whole question, without spaces. */
  key: string
  /** What the answer depends on and a write may change. */
  dependsOn: (answer: Answer) => readonly Dependency[]
  /** Approximate bytes of the answer in memory, beyond what every answer takes. */
  weightOf: (answer: Answer) => number
}

/** Keeps answers in memory until something that they depend on changes. */
export interface AnswerMemory {
  get(key: string): unknown
  /** @param answer.commits At least how many commits it has seen; undefined if some were made while it was read. */
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

export interface GraphReadsOptions {
  reader: Reader
  /** Keeps whole answers; if missing, each is read. */
  answers?: AnswerMemory | undefined
  /** Keeps bodies; if missing, each is read. */
  bodies?: BodyMemory | undefined
  /** Shared with other reads of the same index; by default, its own. */
  transactions?: Transactions
  /** Resolves when the index can be read: until then, synchronous reads throw. By default, it can be read at once. */
  opened?: () => Promise<void>
}

/** All reads of the admitted graph. Every read is answered from the index; none follows the chain. */
export class GraphReads {
  /** In the host of another engine: resolves when the index can be read. Until then, everything else throws. */
  opened?: () => Promise<void>
  readonly transactions: Transactions
  readonly names: Names
  readonly ordinals: Ordinals
  readonly metadata: Metadata
  readonly content: Content
  readonly streams: Streams
  readonly listings: Listings
  readonly charts: Charts
  readonly chain: Chain
  readonly things: Things

  constructor(
    private readonly from: GraphReadsOptions,
    readonly guard: Guard,
    /** Hits and misses of answers in memory, since the start. */
    readonly answersUse = { hits: 0, misses: 0 },
  ) {
    const { reader, bodies, opened, transactions = new Transactions(reader) } = from
    if (opened !== undefined) this.opened = opened
    this.transactions = transactions
    this.names = new Names(reader, guard)
    this.ordinals = new Ordinals(reader, guard)
    this.metadata = new Metadata(reader, guard)
    this.content = new Content(reader, guard, bodies)
    this.streams = new Streams(reader, guard, (query, read) => this.summaryOf(query, read))
    this.listings = new Listings(reader, guard)
    this.charts = new Charts(reader, guard)
    this.chain = new Chain(reader)
    this.things = new Things(reader, guard, this.content)
  }

  /** The same reads, with a check of each tip that is read, and of each stream that reaches the tip. */
  checkingTips(checkTip: (tip: OrdinalStep | undefined) => void): GraphReads {
    const { from, guard, answersUse, transactions } = this
    return new GraphReads(
      { ...from, transactions },
      new Guard(from.reader, { blocklist: () => guard.list, checkTip }),
      answersUse,
    )
  }

  /**
   * Runs synchronous reads that belong together, on one snapshot.
   *
   * @param cache How the answer may be kept in memory.
   */
  consistent<Answer>(read: () => Answer, cache?: CacheOptions<Answer>): Answer {
    const { reader, answers } = this.from
    if (cache === undefined || answers === undefined) return reader.snapshot(read)
    const known = this.cachedAnswer(cache.key)
    if (known !== undefined) return known as Answer
    this.answersUse.misses++
    return reader.snapshot((commits) => {
      const answer = read()
      this.keep(answer, cache, commits)
      return answer
    })
  }

  acrossSnapshots<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    return this.from.reader.acrossSnapshots(read)
  }

  afterLong<Answer>(answer: () => Answer): Awaitable<Answer> {
    return this.from.reader.afterLong(answer)
  }

  /** The cached answer with a key; undefined if there is none, or it may be out of date. */
  cachedAnswer(key: string): unknown {
    const known = this.from.answers?.get(key)
    if (known !== undefined) this.answersUse.hits++
    return known
  }

  private keep<Answer>(value: Answer, cache: CacheOptions<Answer>, commits: number | undefined): void {
    if (value === undefined) return
    const { key, dependsOn, weightOf } = cache
    this.from.answers?.keep(key, { value, commits, dependsOn: dependsOn(value), weight: weightOf(value) })
  }

  /** Keeps it in memory: each request for a range of a stream needs it, and it reads a row for each chunk. */
  private async summaryOf(
    { chunkTypes, outpoint }: StreamQuery,
    read: () => Promise<StreamSummary | undefined>,
  ): Promise<StreamSummary | undefined> {
    const key = `stream ${chunkTypes} ${formatOutpoint(outpoint)}`
    const known = this.cachedAnswer(key)
    if (known !== undefined) return known as StreamSummary
    this.answersUse.misses++
    const { reader } = this.from
    const { commits } = reader
    const stream = await read()
    const cache = {
      key,
      dependsOn: () => [dependency.all],
      weightOf: () => SEGMENT_WEIGHT * (stream?.segments.length ?? 0),
    }
    this.keep(stream, cache, reader.commits === commits ? commits : undefined)
    return stream
  }
}

/** Approximate bytes of a stream's segment in memory. */
const SEGMENT_WEIGHT = 256

export interface FactStoreOptions extends GraphReadsOptions {
  writer: Pick<Writer, 'record' | 'change' | 'note' | 'setting' | 'failure'>
  /** Called after every reorganisation with how many transactions became inactive or active again. */
  onReorg?: ((transactions: number) => void) | undefined
  /** Called once something was blocked, unblocked or removed: bodies in memory may be gone for good. */
  onBlocked?: (() => void) | undefined
}

export interface RecordOptions extends RecordTransactions {
  /** The place of the write in the queue. */
  place?: Place
}

/** The store of a host: reads from the index, blocked things included, and writes through the one writer. */
export class FactStore extends GraphReads {
  /** The same reads without blocked things, for the public (`docs/operating.md`, Blocking). */
  readonly served: GraphReads
  readonly blocks: Blocks
  readonly frontier: Frontier
  readonly admissions: Admissions
  readonly anchors: Anchors
  readonly settings: Settings
  readonly headers: HeaderStore
  readonly ancestors: AncestorQueue

  constructor(private readonly options: FactStoreOptions) {
    const { reader, writer } = options
    super(options, new Guard(reader))
    this.served = new GraphReads(
      { ...options, transactions: this.transactions },
      new Guard(reader, { blocklist: listBlocked(reader, options.onBlocked) }),
      this.answersUse,
    )
    this.blocks = new Blocks(reader)
    this.frontier = new Frontier(reader)
    this.admissions = new Admissions(reader)
    this.anchors = new Anchors(reader)
    this.settings = {
      // Settings that derivation depends on are registers, all others state. Read from the log, as the index may be behind it.
      get: (name) =>
        this.read((sql, log) => {
          const registered = latestOf(log, register.setting(name))
          return registered === undefined ? sql.get(STATE, name)?.value : String(registered.value)
        }),
      set: async (name, value, from) => {
        this.report(await writer.setting(name, value, from))
      },
    }
    // The chain of most work among the headers of the log.
    this.headers = {
      range: () => this.read(headerRange),
      read: (query) => this.read((sql) => readHeaders(sql, query)),
      replaceFrom: (change) => this.change('replaceHeaders', change),
      addBelow: (change) => this.change('addHeadersBelow', change),
      clear: () => this.change('clearHeaders'),
    }
    const read = <Answer>(find: (sql: Sql) => Answer): Promise<Answer> => this.read(find)
    this.ancestors = {
      ...ancestorsIn(reader, read),
      postpone: async (entry, { due }) => {
        const { hole, tries, fetched } = entry
        // It goes behind everything that waits.
        const attempt = { hole, due, place: steadyTime(), tries, ...fetched }
        await writer.note('postpone', await sharingEntries(read, entry), attempt)
      },
    }
  }

  /** Submissions that wait until they are final. They are in no answer and in no conflict. */
  readonly held = {
    /** Stores a submission; over the limit, those that would wait longest are deleted. */
    hold: (submission: HeldSubmission, limits: { maxCount: number }): Promise<void> =>
      this.options.writer.note('hold', submission, limits),
    held: (txid: string): Promise<HeldSubmission | undefined> =>
      this.read((sql) => sql.all(HELD, blobOf(txid)).map(submissionIn)[0]),
    /** Some of those that are final at a position, the shortest locks first. */
    heldUntil: ({ height, time }: ChainPosition, limit: number): Promise<HeldSubmission[]> =>
      this.read((sql) => sql.all(HELD_UNTIL, height, time, limit).map(submissionIn)),
    release: (txid: string): Promise<void> => this.options.writer.note('release', txid),
  }

  /**
   * What the network said about transactions: answers to this host, and callbacks with its token (`docs/spec/overlay.md`,
   * Sightings). Not derived from anything else, and kept for good.
   */
  readonly sightings = {
    /** The sightings of these transactions themselves. */
    of: (txids: string[]): Map<string, Sighting> => {
      const found = this.options.reader.all([...new Set(txids)], (sql, txid): [string, Sighting][] => {
        const row = sql.get(SAID, blobOf(txid))
        return row === undefined ? [] : [[txid, row.said === 1 ? 'seen' : 'rejected']]
      })
      return new Map(found)
    },
    /**
     * Records the latest sightings, also of transactions that are not stored yet. Conflicts are decided in the same write. Known
     * sightings are not written again.
     */
    record: (records: readonly SightingRecord[]): Promise<RecordedSightings> =>
      this.change('sightings', records),
  }

  readonly blocklist = {
    page: (query: BlockedQuery): BlockedRecord[] =>
      this.options.reader.answer((sql) => blockedPage(sql, query)),
    list: (): Blocklist => this.served.guard.list,
    /**
     * Blocks something for good, whatever is submitted and however often the store is reopened. Blocking it again changes the
     * reason and keeps the time.
     *
     * @returns The entry as stored.
     */
    add: (record: BlockedRecord): Promise<BlockedRecord> => this.change('block', record),
    /** Unblocks it. Returns whether it was blocked. */
    remove: (subject: BlockedSubject): Promise<boolean> => this.change('unblock', subject),
  }

  /** Whether the database answers. @throws what the driver throws if it does not. */
  async ping(): Promise<void> {
    await this.opened?.()
    const { failure } = this.options.writer
    if (failure !== undefined) throw failure
    this.options.reader.answer((sql) => sql.get('select 1'))
  }

  async isEmpty(): Promise<boolean> {
    return await this.read((sql) => [ANY_STORED, ANY_PENDING].every((any) => sql.get(any) === undefined))
  }

  /**
   * Stores transactions: all of one call or none. Of a transaction that is stored already, only the proof is added. Conflicts and
   * everything derived are decided in the same write.
   *
   * @returns The outputs that topics newly hold because of this call, and why they hold none, or not one, of a subject.
   * @throws LostConflictError if a subject is refused; then nothing is added, unless it waits ({@link RecordOptions.keepLost}).
   * WriterBusyError if it waited longer than `options.place.patience`.
   */
  async record(
    transactions: readonly TransactionRecord[],
    { place, ...options }: RecordOptions = {},
  ): Promise<Pick<Recorded, 'admitted' | 'refused'>> {
    const recorded = await this.options.writer.record(transactions, options, place)
    this.report(recorded)
    for (const { txid, reason } of recorded.lost) throw new LostConflictError(txid, reason)
    return recorded
  }

  /**
   * Removes the proofs by a block that the chain no longer has. Everything that depended on them is decided again in the same write.
   *
   * @returns How many transactions lost their proof.
   */
  disprove(block: Block): Promise<number> {
    return this.change('disprove', block)
  }

  /** How often results of earlier writes changed, or what is blocked. */
  get reorgs(): number {
    return this.options.reader.reorgs
  }

  /** Blocks an output for good, as the engine's eviction: it is no longer found, and no later `record` brings it back. */
  evict(outpoint: Outpoint): Promise<void> {
    return this.change('evict', outpoint, steadyTime())
  }

  private async read<Answer>(find: (sql: Sql, log: LocalLog) => Answer): Promise<Answer> {
    await this.opened?.()
    return this.options.reader.answer(find)
  }

  private async change<Method extends DoorMethod>(
    method: Method,
    ...args: Parameters<Door[Method]>
  ): Promise<ReturnType<Door[Method]>> {
    const changed = await this.options.writer.change(method, ...args)
    this.report(changed)
    return changed.result
  }

  private report({ reorganised }: Written): void {
    if (reorganised > 0) this.options.onReorg?.(reorganised)
  }
}

// Read from the log: the index may not be derived yet.
const ANY_STORED = `select 1 from log.log where kind = ${FACT.transaction} limit 1`
const ANY_PENDING = 'select 1 from log.pending limit 1'

const STATE = 'select value from log.state where name = ?'
const SAID = 'select said from tx where txid = ? and said is not null'

const HELD_COLUMNS = 'select txid, lock_height, lock_time, beef from log.held'
const HELD = `${HELD_COLUMNS} where txid = ?`
const HELD_UNTIL = `${HELD_COLUMNS} where lock_height <= ? and lock_time < ? order by lock_height, lock_time, txid limit ?`

function submissionIn({ txid, lock_height, lock_time, beef }: Row): HeldSubmission {
  return { txid: hexOf(txid), lock: { height: lock_height, time: lock_time }, beef }
}

function blockedPage(sql: Sql, { kind, after, limit }: BlockedQuery): BlockedRecord[] {
  const prefix = kind === undefined ? 'block ' : register.block({ kind, value: '' })
  // No subject ends with a space.
  const last = after && `${register.block(after)} `
  const rows = sql.all(BLOCKED, last !== undefined && last > prefix ? last : prefix, `${prefix}~`, limit)
  return rows.map((row) => {
    const { reason, since } = JSON.parse(row.value) as BlockedValue
    return { ...blockedSubject(row.subject), reason, since }
  })
}
