import { FACT } from '../facts/log.js'
import type { OnRefusal } from '../graph/admission-rules.js'
import type { AncestorQueue } from '../graph/ancestor-queue.js'
import type { BlockedQuery, BlockedRecord, BlockedSubject, Blocklist } from '../graph/blocklist.js'
import type { RecordedSightings, Sighting, SightingRecord } from '../graph/conflict-resolution.js'
import { LostConflictError } from '../graph/errors.js'
import type { Settings } from '../graph/pinned-tree.js'
import type { AdmissionRecord, Block, HeldSubmission, TransactionRecord } from '../graph/records.js'
import { headerRange, readHeaders } from '../index/headers.js'
import type { ChainPosition } from '../protocol/block-rules.js'
import type { HeaderStore } from '../protocol/header-store.js'
import { steadyTime } from '../protocol/monotonic.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { Place, Writer, Written } from '../writer/writer.js'
import { Admissions } from './admissions.js'
import { ancestorsIn, sharingEntries } from './ancestors.js'
import { Blocks } from './blocks.js'
import { Frontier } from './frontier.js'
import { GraphReads, type GraphReadsOptions } from './graph-reads.js'
import { Guard, listBlocked } from './guard.js'
import { blockedPage, heldOf, heldUntil, interactionSince, settingOf, sightingsOf } from './state.js'

export interface FactStoreOptions extends GraphReadsOptions {
  writer: Pick<Writer, 'record' | 'change' | 'note' | 'setting' | 'failure'>
  /** Called after every reorganisation with how many transactions became inactive or active again. */
  onReorg?: ((transactions: number) => void) | undefined
  /** Called once something was blocked, unblocked or removed: bodies in memory may be gone for good. */
  onBlocked?: (() => void) | undefined
}

export interface RecordOptions {
  /** Transactions that are refused if they do not count, unless they are mined. */
  subjects?: readonly string[]
  /**
   * Stores subjects that lose nevertheless, for a store that derives admissions: they wait, without being part of any answer,
   * until a proof or a sighting makes them win, and count from that write on. But none that lost to a mined one, or that come
   * with double spends among what they are built on. How many wait is limited: first to go are the oldest of the client that
   * has the most.
   */
  keepLost?: {
    /** Who submits it, as up to 8 bytes in hex. */
    client?: string | undefined
  }
  /** Where the write stands, for a store that has a queue. */
  place?: Place
  /** Called for what the rules do not admit. */
  onRefusal?: OnRefusal
}

/**
 * The facts of a log, as a host has them: reads from its index, blocked things included, and writes by the one writer.
 */
export class FactStore extends GraphReads {
  /** The same without what is blocked, as everybody may see it (`docs/operating.md`, Blocking). */
  readonly served: GraphReads
  readonly blocks: Blocks
  readonly frontier: Frontier
  readonly admissions: Admissions
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
    this.settings = {
      get: (name) => this.whenOpened(() => settingOf(reader, name)),
      set: async (name, value, from) => {
        await this.after(writer.setting(name, value, from))
      },
    }
    // The chain of most work among the headers of the log.
    this.headers = {
      range: () => this.whenOpened(() => reader.answer(headerRange)),
      read: (query) => this.whenOpened(() => reader.answer((sql) => readHeaders(sql, query))),
      replaceFrom: async (change) => (await this.after(writer.change('replaceHeaders', change))).result,
      addBelow: async (change) => (await this.after(writer.change('addHeadersBelow', change))).result,
      clear: async () => {
        await this.after(writer.change('clearHeaders'))
      },
    }
    this.ancestors = {
      ...ancestorsIn(reader, async () => await this.opened?.()),
      postpone: async (entry, { due }) => {
        const { hole, tries, fetched } = entry
        // Whatever waits in line was there before it.
        const attempt = { hole, due, place: steadyTime(), tries, ...fetched }
        await this.after(writer.note('postpone', await sharingEntries(reader, entry), attempt))
      },
    }
  }

  /** How far the sync with a peer has come, by host and topic. */
  readonly interactions = {
    last: (host: string, topic: string): Promise<number> =>
      this.whenOpened(() => interactionSince(this.options.reader, host, topic)),
    setLast: (host: string, topic: string, since: number): Promise<void> =>
      this.after(this.options.writer.note('interaction', host, topic, since)),
  }

  /** Submissions that wait until they are final. They are in no answer and in no conflict. */
  readonly held = {
    /** Stores a submission; over the limit, those that would wait longest are deleted. */
    hold: (submission: HeldSubmission, limits: { maxCount: number }): Promise<void> =>
      this.after(this.options.writer.note('hold', submission, limits)),
    held: (txid: string): Promise<HeldSubmission | undefined> =>
      this.whenOpened(() => heldOf(this.options.reader, txid)),
    /** Some of those that are final at a position, the shortest locks first. */
    heldUntil: (position: ChainPosition, limit: number): Promise<HeldSubmission[]> =>
      this.whenOpened(() => heldUntil(this.options.reader, position, limit)),
    release: (txid: string): Promise<void> => this.after(this.options.writer.note('release', txid)),
  }

  /**
   * What the network said of transactions: answers to questions of this host, and callbacks that carry its token
   * (`docs/spec/overlay.md`, Sightings). Not derived from anything else, and kept for good.
   */
  readonly sightings = {
    /** What was recorded of these transactions themselves. */
    of: (txids: string[]): Map<string, Sighting> => sightingsOf(this.options.reader, txids),
    /**
     * Records what was said last of transactions, also of such as are not stored: then it counts when they come. Conflicts are
     * decided in the same write. What is known already is not written again.
     */
    record: async (records: readonly SightingRecord[]): Promise<RecordedSightings> =>
      (await this.after(this.options.writer.change('sightings', records))).result,
  }

  readonly blocklist = {
    page: (query: BlockedQuery): BlockedRecord[] => blockedPage(this.options.reader, query),
    list: (): Blocklist => this.served.guard.list,
    /**
     * Blocks something for good, whatever is submitted and however often the store is reopened. Blocking it again changes the
     * reason and keeps the time.
     *
     * @returns The entry as stored.
     */
    add: async (record: BlockedRecord): Promise<BlockedRecord> =>
      (await this.after(this.options.writer.change('block', record))).result,
    /** Unblocks it. Returns whether it was blocked. */
    remove: async (subject: BlockedSubject): Promise<boolean> =>
      (await this.after(this.options.writer.change('unblock', subject))).result,
  }

  /** Whether the database answers. @throws what the driver throws if it does not. */
  async ping(): Promise<void> {
    await this.opened?.()
    const { failure } = this.options.writer
    if (failure !== undefined) throw failure
    this.options.reader.single((sql) => sql.get('select 1'))
  }

  async isEmpty(): Promise<boolean> {
    return await this.whenOpened(() =>
      this.options.reader.answer((sql) =>
        [ANY_STORED, ANY_PENDING].every((statement) => sql.get(statement) === undefined),
      ),
    )
  }

  /**
   * Stores transactions: all of one call or none of them. One that is already stored changes nothing but its proof. Which of them
   * count, and all else, follows in the same write.
   *
   * @returns The outputs that topics hold because of this call, and did not before.
   * @throws LostConflictError if one of the subjects is refused; then nothing is added, unless it waits
   * ({@link RecordOptions.keepLost}). WriterBusyError if it waited longer than `options.place.patience`.
   */
  async record(
    transactions: readonly TransactionRecord[],
    options: RecordOptions = {},
  ): Promise<AdmissionRecord[]> {
    const { subjects, keepLost, place, onRefusal } = options
    const asked = { ...(subjects && { subjects }), ...(keepLost && { keepLost }) }
    const recorded = await this.options.writer.record(transactions, asked, place)
    this.report(recorded)
    for (const refusal of recorded.refused) onRefusal?.(refusal)
    for (const { txid, reason } of recorded.lost) throw new LostConflictError(txid, reason)
    return recorded.admitted
  }

  /**
   * Removes the proofs that lead to a block, which the chain no longer has. What depended on them is decided again in the
   * same write.
   *
   * @returns How many transactions lost their proof.
   */
  async disprove(block: Block): Promise<number> {
    return (await this.after(this.options.writer.change('disprove', block))).result
  }

  /** How often what earlier writes had derived has changed, or what is blocked. */
  get reorgs(): number {
    return this.options.reader.reorgs
  }

  /** Blocks an output for good, as the engine's eviction: it is no longer found, and no later `record` brings it back. */
  async evict(outpoint: Outpoint): Promise<void> {
    await this.after(this.options.writer.change('evict', outpoint, steadyTime()))
  }

  private async whenOpened<Answer>(read: () => Answer): Promise<Answer> {
    await this.opened?.()
    return read()
  }

  /** Tells of what was reorganised by a write. */
  private async after<Result>(write: Promise<Result>): Promise<Result> {
    const written = await write
    this.report(written as Partial<Written> | undefined)
    return written
  }

  private report({ reorganised = 0 }: Partial<Written> = {}): void {
    if (reorganised > 0) this.options.onReorg?.(reorganised)
  }
}

// Of the log: the index may have to be derived first.
const ANY_STORED = `select 1 from log.log where kind = ${FACT.transaction} limit 1`
const ANY_PENDING = 'select 1 from log.pending limit 1'
