import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Settings } from '../../../backend/src/graph/pinned-tree.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { unlessAborted } from '../../client/bounded-fetch.js'
import { BackgroundJob, type IsMine } from '../sources/background.js'
import { type ChainSource, parseSourced, parseSourcedProof } from '../sources/chain-source.js'
import { ChainSourceError, isOutage } from '../sources/errors.js'
import type { FeedEntry, FeedPosition, JungleBusSource } from '../sources/junglebus.js'

export interface FeedOptions {
  junglebus: Pick<JungleBusSource, 'transactionsAfter'>
  subscription: string
  /** Fetches transactions that the feed names without bytes or without a proof. */
  source: Pick<ChainSource, 'transaction'>
  settings: Settings
  /** The height from which a subscription is read the first time. */
  firstHeight(): Promise<number>
  /** The height of the chain. */
  tip(): Promise<number>
  /** Whether a transaction is stored with its proof, so that it need not be fetched. */
  isKnown?(txid: string): Promise<boolean>
  /** Called with each transaction, one at a time, in the order of the feed. It may be irrelevant, or a repetition. */
  onTransaction(record: TransactionRecord): Promise<void>
  /** The longest transaction to fetch, in bytes. */
  maxBytes: number
  /** Milliseconds from the end of one reading to the next, unless a new block starts it earlier. */
  interval: number
  /** Whether this process reads the feed; by default, it always does. */
  isMine?: IsMine | undefined
  logger?: Pick<Logger, 'warn'>
}

/** How many of the last blocks are read again after a new one: they may have changed, or may not have been indexed yet. */
const DEPTH = 6
/**
 * After this many transactions that no source knows, or that the feed has named at the same height before, the rest waits for
 * the next reading: each takes requests, and there may be no end of them.
 */
const MAX_USELESS = 100
/** How many transactions are remembered so that they are not passed on again. */
const MAX_REMEMBERED = 10_000
/** The cursor is stored at least once in this many blocks. */
const SAVE_EVERY = 100
const CURSOR = 'feed-cursor'

/**
 * Reads a subscription of a JungleBus: which transactions to look at, as soon as they are in a block. After a restart, it
 * continues from a stored cursor, a few blocks behind the tip.
 *
 * The feed is a hint. Transactions and proofs are checked like those of any source, and nothing depends on its being
 * complete: a sweep finds what it leaves out.
 */
export class Feed {
  private position: FeedPosition | undefined
  private stored = 0
  private tip = 0
  /** Whether a page of the feed may span several blocks. */
  private spansBlocks = false
  /** The transactions that were passed on, with their blocks: the last blocks are read again. */
  private readonly passed = new LRUCache<string, true>({ maxSize: MAX_REMEMBERED, sizeCalculation: () => 1 })
  /** The last warning: an outage is reported once. */
  private warned = ''
  /** The transactions, with heights, that the feed named in this reading, and how many of them were useless. */
  private readonly named = new LRUCache<string, true>({ maxSize: MAX_REMEMBERED, sizeCalculation: () => 1 })
  private useless = 0
  private readonly job: BackgroundJob

  constructor(private readonly options: FeedOptions) {
    this.job = new BackgroundJob(async () => {
      await this.read().catch((error: unknown) => this.note(error))
      return options.interval
    }, options.isMine)
  }

  start(): void {
    this.job.start()
  }

  /** Resolves when nothing is passed on any more. */
  async stop(): Promise<void> {
    await this.job.stop()
  }

  /** Reads now: the chain has a new tip, and blocks from `forkedAt` on may have been replaced. */
  onBlock({ forkedAt }: { forkedAt?: number } = {}): void {
    if (forkedAt !== undefined) this.rewindTo(forkedAt)
    this.job.wake()
  }

  /** Reads to the tip. */
  private async read(): Promise<void> {
    const tip = await this.unlessStopped(this.options.tip())
    this.forgetNamed()
    if (this.position === undefined)
      this.position = { height: Math.min(tip, await this.firstHeight()), index: -1 }
    else if (tip !== this.tip) this.rewindTo(tip - DEPTH)
    this.tip = tip
    while (!this.job.signal.aborted) {
      const entries = await this.nextPage(this.position)
      for (const entry of entries) {
        if (this.job.signal.aborted || !(await this.passOn(entry))) return
        // An entry for a block beyond the tip must not move the position past blocks that are still to come.
        if (entry.height <= tip) this.position = { height: entry.height, index: entry.index }
      }
      const isPast = entries.length === 0 || entries.some(({ height }) => height > tip)
      const next: number = this.spansBlocks ? tip : this.position.height + 1
      if (isPast && this.position.height >= tip) break
      if (isPast) this.position = { height: next, index: -1 }
      await this.save({ atLeast: SAVE_EVERY })
    }
    await this.save({ atLeast: 1 })
  }

  /** The entries after a position, in the order of the chain. */
  private async nextPage(position: FeedPosition): Promise<FeedEntry[]> {
    const { junglebus, subscription } = this.options
    const entries = await this.unlessStopped(junglebus.transactionsAfter(position, subscription))
    const next = entries.filter((entry) => isBefore(position, entry))
    this.spansBlocks ||= next.some(({ height }) => height > position.height)
    return next.sort((one, other) => (isBefore(one, other) ? -1 : 1))
  }

  /**
   * @returns Whether to go on to the next entry: not if a source did not answer. What cannot be stored is left to the sweep.
   * @throws ChainSourceError after too many useless entries.
   */
  private async passOn(entry: FeedEntry): Promise<boolean> {
    const { txid, height, block } = entry
    const place = `${height} ${txid}`
    if (this.named.has(place)) {
      this.count('it repeats the same transactions')
      return true
    }
    this.named.set(place, true)
    if (this.passed.has(`${block} ${txid}`)) return true
    const { isKnown, onTransaction } = this.options
    try {
      if ((await isKnown?.(txid)) !== true) {
        const record = await this.recordOf(entry)
        if (record === undefined) {
          // A source may know it when its block is read again.
          this.count('it names one transaction after another that no source knows')
          return true
        }
        await onTransaction(record)
      }
    } catch (error) {
      if (this.job.signal.aborted) return false
      this.note(error)
      if (isOutage(error)) return false
    }
    this.passed.set(`${block} ${txid}`, true)
    return true
  }

  /** Counts a useless entry. */
  private count(why: string): void {
    if (++this.useless > MAX_USELESS) throw new ChainSourceError('NO_ANSWER', why)
  }

  private forgetNamed(): void {
    this.named.clear()
    this.useless = 0
  }

  private async recordOf({ txid, raw, merklePath }: FeedEntry): Promise<TransactionRecord | undefined> {
    const { source, maxBytes } = this.options
    if (raw.length > 0 && raw.length <= maxBytes && merklePath.length > 0) {
      try {
        return { ...parseSourced(txid, raw), proof: parseSourcedProof(txid, merklePath) }
      } catch (error) {
        // JungleBus has changed the format of proofs several times.
        if (!(error instanceof ChainSourceError)) throw error
      }
    }
    return await this.unlessStopped(source.transaction(txid, { maxBytes }))
  }

  private async unlessStopped<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return await unlessAborted(answer, this.job.signal)
  }

  private async firstHeight(): Promise<number> {
    const { settings, subscription, firstHeight } = this.options
    const [stored, height] = (await settings.get(CURSOR))?.split(' ') ?? []
    if (stored !== subscription || !/^\d{1,10}$/.test(height ?? '')) return await firstHeight()
    this.stored = Number(height)
    return this.stored
  }

  /** Stores the cursor if it moved by that many blocks. */
  private async save({ atLeast }: { atLeast: number }): Promise<void> {
    const { settings, subscription } = this.options
    const height = Math.min(this.position?.height ?? 0, this.tip - DEPTH)
    if (height < this.stored + atLeast) return
    await settings.set(CURSOR, `${subscription} ${height}`)
    this.stored = height
  }

  private rewindTo(height: number): void {
    this.forgetNamed()
    if (this.position !== undefined && height < this.position.height)
      this.position = { height: Math.max(0, height), index: -1 }
  }

  private note(error: unknown): void {
    if (this.job.signal.aborted) return
    const message = messageOf(error)
    if (this.warned !== message) this.options.logger?.warn(`feed: ${message}`)
    this.warned = message
  }
}

function isBefore(one: FeedPosition, other: FeedPosition): boolean {
  return one.height === other.height ? one.index < other.index : one.height < other.height
}
