import { setTimeout } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Settings } from '../../../backend/src/graph/pinned-tree.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { unlessAborted } from '../../client/bounded-fetch.js'
import { type IsMine, untilMine } from '../ancestors/is-mine.js'
import { type ChainSource, parseSourced, parseSourcedProof } from '../sources/chain-source.js'
import { ChainSourceError, isOutage, type LastError } from '../sources/errors.js'
import type { FeedEntry, FeedPosition, JungleBusSource } from '../sources/junglebus.js'

export interface FeedOptions {
  junglebus: Pick<JungleBusSource, 'transactionsAfter'>
  subscription: string
  /** Where transactions come from that arrive without bytes, or without a proof. */
  source: Pick<ChainSource, 'transaction'>
  settings: Settings
  /** The height at which a subscription is read from for the first time. */
  firstHeight(): Promise<number>
  /** The height of the chain. */
  tip(): Promise<number>
  /** Whether a transaction is stored with its proof, so that it need not be fetched. */
  isKnown?(txid: string): Promise<boolean>
  /** Called with each transaction, one at a time, in the order of the feed. It may be irrelevant, and it may come again. */
  onTransaction(record: TransactionRecord): Promise<void>
  /** The longest transaction to fetch, in bytes. */
  maxBytes: number
  /** From the end of one reading to the next if no new block starts it earlier, in milliseconds. */
  interval: number
  /** Whether it is this process that reads; by default, it always is. */
  isMine?: IsMine | undefined
  logger?: Pick<Logger, 'warn'>
}

export interface FeedStatus {
  /** The height up to which it was read. */
  height?: number
  /** How many transactions it brought since the start. */
  transactions: number
  failures: number
  lastError?: LastError
}

/** How many of the last blocks are read again after a new one: they may have changed, or were not indexed yet. */
const DEPTH = 6
/**
 * After how many transactions that no source knows, or that it named at the same height before, the feed is left alone until the
 * next reading: each takes requests, and there may be no end of them.
 */
const MAX_USELESS = 100
/** How many transactions are remembered so as not to pass them on again. */
const MAX_REMEMBERED = 10_000
/** After how many blocks the cursor is stored at the latest. */
const SAVE_EVERY = 100
const CURSOR = 'feed-cursor'

/**
 * Reads a subscription of a JungleBus: which transactions to look at, as soon as they are in a block. It continues after a
 * restart from a stored cursor, a few blocks behind the tip.
 *
 * It is a hint. Transactions and proofs are checked like those of any source, and nothing depends on its being complete: what
 * it leaves out, a sweep finds later.
 */
export class Feed {
  private position: FeedPosition | undefined
  private stored = 0
  private tip = 0
  /** Whether its pages go on to later blocks. */
  private spansBlocks = false
  /** What was passed on, with its block: the last blocks are read again. */
  private readonly passed = new LRUCache<string, true>({ max: MAX_REMEMBERED })
  private readonly done = { transactions: 0, failures: 0 }
  private lastError: FeedStatus['lastError']
  /** What it named in this reading, with the height, and how much of that was of no use. */
  private readonly named = new LRUCache<string, true>({ max: MAX_REMEMBERED })
  private useless = 0
  private readonly stopping = new AbortController()
  private wake = new AbortController()
  private running: Promise<void> | undefined

  constructor(private readonly options: FeedOptions) {}

  start(): void {
    this.running ??= this.run()
  }

  /** Resolves when nothing is passed on any more. */
  async stop(): Promise<void> {
    this.stopping.abort()
    this.wake.abort()
    await this.running
  }

  /** Reads now: the chain has a new tip, and blocks from `forkedAt` on may be others. */
  onBlock({ forkedAt }: { forkedAt?: number } = {}): void {
    if (forkedAt !== undefined) this.rewindTo(forkedAt)
    this.wake.abort()
  }

  status(): FeedStatus {
    const { position, done, lastError } = this
    return { ...(position && { height: position.height }), ...done, ...(lastError && { lastError }) }
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      await untilMine(this.options.isMine, this.stopping.signal)
      this.wake = new AbortController()
      await this.read().catch((error: unknown) => this.note(error))
      await setTimeout(this.options.interval, undefined, { signal: this.wake.signal }).catch(() => undefined)
    }
  }

  /** Reads to the tip. */
  private async read(): Promise<void> {
    const tip = await this.unlessStopped(this.options.tip())
    this.forgetNamed()
    if (this.position === undefined)
      this.position = { height: Math.min(tip, await this.firstHeight()), index: -1 }
    else if (tip !== this.tip) this.rewindTo(tip - DEPTH)
    this.tip = tip
    while (!this.stopping.signal.aborted) {
      const entries = await this.nextPage(this.position)
      for (const entry of entries) {
        if (this.stopping.signal.aborted || !(await this.passOn(entry))) return
        // What it says of blocks that are not there yet does not lead it past those that come.
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

  /** Those after a position, in the order of the chain. */
  private async nextPage(position: FeedPosition): Promise<FeedEntry[]> {
    const { junglebus, subscription } = this.options
    const entries = await this.unlessStopped(junglebus.transactionsAfter(position, subscription))
    const next = entries.filter((entry) => isBefore(position, entry))
    this.spansBlocks ||= next.some(({ height }) => height > position.height)
    return next.sort((one, other) => (isBefore(one, other) ? -1 : 1))
  }

  /**
   * @returns Whether to go on to the next one: not without an answer of a source. What cannot be stored is left to the sweep.
   * @throws ChainSourceError after very many that are of no use.
   */
  private async passOn(entry: FeedEntry): Promise<boolean> {
    const { txid, height, block } = entry
    const place = `${height} ${txid}`
    if (this.named.has(place)) {
      this.count('it names the same transactions again and again')
      return true
    }
    this.named.set(place, true)
    if (this.passed.has(`${block} ${txid}`)) return true
    const { isKnown, onTransaction } = this.options
    try {
      if ((await isKnown?.(txid)) !== true) {
        const record = await this.recordOf(entry)
        if (record === undefined) {
          // It may be known when its block is read again.
          this.count('it names one transaction after another that no source knows')
          return true
        }
        await onTransaction(record)
        this.done.transactions++
      }
    } catch (error) {
      if (this.stopping.signal.aborted) return false
      this.note(error)
      if (isOutage(error)) return false
    }
    this.passed.set(`${block} ${txid}`, true)
    return true
  }

  /** Counts one that is of no use. */
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
        // Proofs have had several formats.
        if (!(error instanceof ChainSourceError)) throw error
      }
    }
    return await this.unlessStopped(source.transaction(txid, { maxBytes }))
  }

  private async unlessStopped<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return await unlessAborted(answer, this.stopping.signal)
  }

  private async firstHeight(): Promise<number> {
    const { settings, subscription, firstHeight } = this.options
    const [stored, height] = (await settings.get(CURSOR))?.split(' ') ?? []
    if (stored !== subscription || !/^\d{1,10}$/.test(height ?? '')) return await firstHeight()
    this.stored = Number(height)
    return this.stored
  }

  /** Stores the cursor if it moved that far. */
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
    if (this.stopping.signal.aborted) return
    const message = messageOf(error)
    if (this.lastError?.message !== message) this.options.logger?.warn(`feed: ${message}`)
    this.done.failures++
    this.lastError = { at: Date.now(), message }
  }
}

function isBefore(one: FeedPosition, other: FeedPosition): boolean {
  return one.height === other.height ? one.index < other.index : one.height < other.height
}
