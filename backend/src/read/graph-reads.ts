import { type Dependency, dependency } from '../graph/dependencies.js'
import type { OrdinalStep } from '../graph/records.js'
import type { StreamQuery, StreamSummary } from '../graph/stream.js'
import type { Awaitable } from '../graph/yield-to-event-loop.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { Chain } from './chain.js'
import { Charts } from './charts.js'
import { type BodyMemory, Content } from './content.js'
import { Guard } from './guard.js'
import { Listings } from './listings.js'
import { Metadata } from './metadata.js'
import { Names } from './names.js'
import { Ordinals } from './ordinals.js'
import type { Reader } from './reader.js'
import { Streams } from './streams.js'
import { Things } from './things.js'
import { Transactions } from './transactions.js'

/** An answer that depends on nothing but the question and what the store holds. */
export interface CacheOptions<Answer> {
  /** The whole question, without spaces. */
  key: string
  /** What the answer follows from and a write may change. */
  dependsOn: (answer: Answer) => readonly Dependency[]
  /** About how many bytes the answer takes in memory, beyond what every answer takes. */
  weightOf: (answer: Answer) => number
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

export interface GraphReadsOptions {
  reader: Reader
  /** Keeps whole answers; if missing, each is read. */
  answers?: AnswerMemory | undefined
  /** Keeps bodies; if missing, each is read. */
  bodies?: BodyMemory | undefined
  /** Those of other reads from the same index. */
  transactions?: Transactions
  /** Resolves when there is something to read from: before, reads that are no promises throw. By default, there is. */
  opened?: () => Promise<void>
}

/** Everything that is read of the admitted graph. Every read is answered from the index; none follows the chain. */
export class GraphReads {
  /** Resolves when there is something to read from, in the host of another engine: until then, all else throws. */
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
    /** Answers from memory, and reads of what may be in memory, since the start. */
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

  /** The same reads, but each tip that is read has to pass a check, and so does a stream that reaches the tip. */
  checkingTips(checkTip: (tip: OrdinalStep | undefined) => void): GraphReads {
    const { from, guard, answersUse, transactions } = this
    return new GraphReads(
      { ...from, transactions },
      new Guard(from.reader, { blocklist: () => guard.list, checkTip }),
      answersUse,
    )
  }

  /**
   * Runs reads that belong together: all of them see one snapshot. Nothing may wait in them.
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

  /** Each request for a range of a stream asks for it, and each of its chunks is a row. */
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

/** What a segment of a stream takes in memory, about, in bytes. */
const SEGMENT_WEIGHT = 256
