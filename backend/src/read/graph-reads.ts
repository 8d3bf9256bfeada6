import { type Dependency, dependency } from '../graph/dependencies.js'
import { StoreUnavailableError, UnstableReadError } from '../graph/errors.js'
import type { OrdinalStep } from '../graph/records.js'
import type { StreamQuery, StreamSummary } from '../graph/stream.js'
import type { Awaitable } from '../graph/yield-to-event-loop.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { type BodyMemory, Content } from './content.js'
import { Guard } from './guard.js'
import { Listings } from './listings.js'
import { Metadata } from './metadata.js'
import { Names } from './names.js'
import { Ordinals } from './ordinals.js'
import type { Reader, Snapshot } from './reader.js'
import { Streams } from './streams.js'
import { Transactions } from './transactions.js'

/** A role read through a wrapper that may yield before it answers, so each answer may be a promise. */
export type Paced<Role> = {
  [Name in keyof Role]: Role[Name] extends (...args: infer Asked) => infer Answer
    ? (
        ...args: Asked
      ) => [Answer] extends [Generator | AsyncIterable<unknown>] ? Answer : Answer | Promise<Awaited<Answer>>
    : Role[Name]
}

/** A store of such roles. */
export type PacedStore<Store> = { readonly [Role in keyof Store]: Paced<Store[Role]> }

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

  constructor(
    private readonly from: GraphReadsOptions,
    readonly guard: Guard,
    /** Answers from memory, and reads of what may be in memory, since the start. */
    readonly answersUse = { hits: 0, misses: 0 },
  ) {
    const { reader, bodies, transactions = new Transactions(reader) } = from
    this.transactions = transactions
    this.names = new Names(reader, guard)
    this.ordinals = new Ordinals(reader, guard)
    this.metadata = new Metadata(reader, guard)
    this.content = new Content(reader, guard, bodies)
    this.streams = new Streams(reader, guard, (query, read) => this.summaryOf(query, read))
    this.listings = new Listings(reader, guard)
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
   * Runs reads that belong together, from one snapshot if none of them waits, and otherwise again if a reorganisation happened in
   * between, so that no answer mixes two states.
   *
   * @param read Only reads; may run several times if it returns a promise.
   * @param cache How a caching store may keep this answer.
   * @returns The answer, without a promise if it was cached or read at once.
   * @throws UnstableReadError if reorganisations keep happening.
   */
  consistent<Answer>(read: () => Awaitable<Answer>, cache?: CacheOptions<Answer>): Awaitable<Answer> {
    if (cache === undefined || this.from.answers === undefined) return this.read(read)
    const known = this.cachedAnswer(cache.key)
    if (known !== undefined) return known as Answer
    this.answersUse.misses++
    return this.read(read, cache)
  }

  /** The cached answer with a key; undefined if there is none, or it may be out of date. */
  cachedAnswer(key: string): unknown {
    const known = this.from.answers?.get(key)
    if (known !== undefined) this.answersUse.hits++
    return known
  }

  private read<Answer>(read: () => Awaitable<Answer>, cache?: CacheOptions<Answer>): Awaitable<Answer> {
    const { reader } = this.from
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
    const { reader } = this.from
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

/** How often a long answer is read again that reorganisations come between. */
const TRIES = 20

/** What a segment of a stream takes in memory, about, in bytes. */
const SEGMENT_WEIGHT = 256
