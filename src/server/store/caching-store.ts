import { LRUCache } from 'lru-cache'
import { type Logger, pino } from 'pino'
import type { BlockedRecord, BlockedSubject, Blocklist } from '../../../backend/src/graph/blocklist.js'
import type {
  KeptAnswer,
  OrdinalStep,
  RecordOptions,
  StreamQuery,
  StreamSummary,
} from '../../../backend/src/graph/graph-store.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import type { MapState } from '../../../backend/src/graph/map-merge.js'
import { optimisticRead } from '../../../backend/src/graph/optimistic-read.js'
import type {
  AdmissionRecord,
  Block,
  GraphRecords,
  NameRecord,
  OutputRecord,
} from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { ChangePoller } from './change-poller.js'
import { ForwardingStore } from './forwarding-store.js'

/**
 * How many answers are kept, and how much they may weigh together: about their bytes, as strangers say how much MAP an
 * ordinal has, and of how many segments a stream is.
 */
const MAX_ANSWERS = 20_000
const MAX_WEIGHT = 32 * 1024 * 1024
const MAX_ANSWER_WEIGHT = 1024 * 1024
/** Of an answer that has neither, and of a segment. */
const USUAL_WEIGHT = 1024
const SEGMENT_WEIGHT = 256
/** Of a text in metadata beside its characters: a stranger may have written ten thousand that are empty. */
const TEXT_WEIGHT = 100
/** Bytes of the short bodies that are kept. */
const MAX_BODIES = 32 * 1024 * 1024

export interface CachingStoreOptions {
  /** The one whose answers are kept. */
  store: HostStore
  /** Whether other processes may write to the database, too. */
  isShared?: boolean
  /** Called where somebody has written to it since it was last looked. */
  onWrite?: () => Promise<void>
  logger?: Logger
}

/**
 * A store with what the gateway asks of it over and over kept in memory until the next write. Where other processes have the
 * database, too, their writes are looked for, and what is kept counts for less than a second without. A body is kept
 * longer: its hash says what it is.
 */
export class CachingStore extends ForwardingStore {
  private readonly answers = new LRUCache<string, Promise<unknown>>({
    max: MAX_ANSWERS,
    maxSize: MAX_WEIGHT,
    maxEntrySize: MAX_ANSWER_WEIGHT,
  })
  private readonly bodies = new LRUCache<string, Uint8Array>({
    maxSize: MAX_BODIES,
    sizeCalculation: ({ length }) => Math.max(length, 1),
  })
  /** What was answered from memory, and what was read, since the start. */
  readonly caches = { answers: { hits: 0, misses: 0 }, bodies: { hits: 0, misses: 0 } }
  /** How many writes there were: an answer that one may have overtaken is not kept. */
  private writes = 0
  /** How many are under way: of what stands in memory, nobody knows then whether it was before them. */
  private underWay = 0
  /** How often branches had turned when what is kept was read. */
  private turns = 0
  /** Looks for writes of others; undefined where there are none. */
  private readonly watch: ChangePoller | undefined

  constructor({ store, isShared = false, onWrite, logger = pino({ level: 'silent' }) }: CachingStoreOptions) {
    super(store)
    if (isShared) {
      const forget = async (): Promise<void> => {
        await this.forget()
        await onWrite?.()
      }
      this.watch = new ChangePoller({ writes: () => store.written(), onWrite: forget, logger })
    }
  }

  override async open(): Promise<void> {
    await super.open()
    this.turns = await super.reorgCount()
    await this.watch?.start()
  }

  async close(): Promise<void> {
    await this.watch?.stop()
  }

  override async record(records: GraphRecords, options?: RecordOptions): Promise<AdmissionRecord[]> {
    return await this.writing(() => super.record(records, options))
  }

  override async workOff(): Promise<boolean> {
    return await this.writing(() => super.workOff())
  }

  override async disprove(block: Block): Promise<number> {
    return await this.writing(() => super.disprove(block))
  }

  override async evict(outpoint: Outpoint): Promise<void> {
    await this.writing(() => super.evict(outpoint))
  }

  override async block(record: BlockedRecord): Promise<BlockedRecord> {
    return await this.writing(() => super.block(record))
  }

  override async unblock(subject: BlockedSubject): Promise<boolean> {
    return await this.writing(() => super.unblock(subject))
  }

  /** Does what writes to the store, in this thread or another: nothing is answered from memory until it is done. */
  async writing<Result>(write: () => Promise<Result>): Promise<Result> {
    this.underWay++
    try {
      return await write()
    } finally {
      try {
        this.forgetAnswers()
        this.turns = await super.reorgCount()
      } finally {
        this.underWay--
      }
    }
  }

  private forgetAnswers(): void {
    this.writes++
    this.answers.clear()
  }

  /** Somebody else has written. */
  private async forget(): Promise<void> {
    this.forgetAnswers()
    await this.readBlocklist()
  }

  override consistent<Answer>(read: () => Promise<Answer>, kept?: KeptAnswer<Answer>): Promise<Answer> {
    const readAll = (): Promise<Answer> => optimisticRead(read, () => this.reorgCount())
    if (kept === undefined) return readAll()
    return this.remember(
      kept.key,
      readAll,
      (answer) => USUAL_WEIGHT + kept.key.length + kept.weightOf(answer),
    )
  }

  override async reorgCount(): Promise<number> {
    if (this.watch === undefined && this.underWay === 0) return this.turns
    const turns = await super.reorgCount()
    // What is kept was read before: it does not go together with what is read now.
    if (turns !== this.turns && this.watch !== undefined) this.forgetAnswers()
    if (this.watch !== undefined) this.turns = turns
    return turns
  }

  /** What is blocked, as it was less than a second ago. */
  override blocklist(): Blocklist | Promise<Blocklist> {
    return this.isRecent ? super.blocklist() : this.readBlocklist().then(() => super.blocklist())
  }

  /** Whether what is kept in memory may be answered with. */
  private get isRecent(): boolean {
    return this.watch?.isRecent ?? true
  }

  override output(outpoint: Outpoint): Promise<OutputRecord | undefined> {
    return this.remember(`output ${formatOutpoint(outpoint)}`, () => super.output(outpoint))
  }

  override ordinalAt(outpoint: Outpoint, sequence: number): Promise<OrdinalStep | undefined> {
    return this.remember(`${sequence} ${formatOutpoint(outpoint)}`, () => super.ordinalAt(outpoint, sequence))
  }

  /** Kept of one or two, as the guard asks with each read while names are blocked; not of lists, which strangers make up. */
  override genuineOrigins(outpoints: Outpoint[]): Promise<NameRecord[]> {
    if (outpoints.length > 2) return super.genuineOrigins(outpoints)
    return this.remember(`origins ${outpoints.map(formatOutpoint)}`, () => super.genuineOrigins(outpoints))
  }

  override heightOf(txid: string): Promise<number | undefined> {
    return this.remember(`height ${txid}`, () => super.heightOf(txid))
  }

  override async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    // That nothing spends a coin is an answer, too.
    const { spender } = await this.remember(`spender ${formatOutpoint(outpoint)}`, async () => ({
      spender: await super.spenderOf(outpoint),
    }))
    return spender
  }

  override async currentOutput(outpoint: Outpoint): Promise<Outpoint | undefined> {
    // That it is nowhere is an answer, too.
    const { tip } = await this.remember(`current ${formatOutpoint(outpoint)}`, async () => ({
      tip: await super.currentOutput(outpoint),
    }))
    return tip
  }

  override ownMap(outpoint: Outpoint): Promise<MapState> {
    return this.remember(`own ${formatOutpoint(outpoint)}`, () => super.ownMap(outpoint), mapWeight)
  }

  override mergedMap(outpoint: Outpoint, limit?: number): Promise<MapState | undefined> {
    return this.remember(
      `merged ${limit} ${formatOutpoint(outpoint)}`,
      () => super.mergedMap(outpoint, limit),
      mapWeight,
    )
  }

  override stream(query: StreamQuery): Promise<StreamSummary | undefined> {
    const { outpoint, chunkTypes } = query
    return this.remember(
      `stream ${chunkTypes} ${formatOutpoint(outpoint)}`,
      () => super.stream(query),
      (stream) => USUAL_WEIGHT + SEGMENT_WEIGHT * (stream?.segments.length ?? 0),
    )
  }

  override async shortBody(sha256: string): Promise<Uint8Array | undefined> {
    const known = this.bodies.get(sha256)
    if (known !== undefined) {
      this.caches.bodies.hits++
      return known
    }
    this.caches.bodies.misses++
    const body = await super.shortBody(sha256)
    if (body !== undefined) this.bodies.set(sha256, body)
    return body
  }

  /** What was answered stands as the promise that it was answered with: asked again, it costs no other one. */
  private remember<Value>(
    key: string,
    read: () => Promise<Value>,
    weightOf: (value: Value) => number = () => USUAL_WEIGHT,
  ): Promise<Value> {
    if (this.underWay > 0 || !this.isRecent) return read()
    const known = this.answers.get(key)
    if (known !== undefined) {
      this.caches.answers.hits++
      return known as Promise<Value>
    }
    this.caches.answers.misses++
    const { writes } = this
    const answer = read()
    void answer.then(
      (value) => {
        // Of what is not there, strangers can ask without end.
        if (value !== undefined && writes === this.writes && this.underWay === 0)
          this.answers.set(key, answer, { size: weightOf(value) })
      },
      // Whoever asked is told; nothing is kept.
      () => {},
    )
    return answer
  }
}

function mapWeight(map: MapState | undefined): number {
  let weight = USUAL_WEIGHT
  for (const [key, value] of map ?? []) {
    weight += TEXT_WEIGHT + key.length
    for (const text of typeof value === 'string' ? [value] : value) weight += TEXT_WEIGHT + text.length
  }
  return weight
}
