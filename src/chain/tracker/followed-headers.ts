import { EventEmitter, once } from 'node:events'
import { Mutex } from 'async-mutex'
import type { Logger } from 'pino'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import type { Block } from '../../../backend/src/graph/records.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { timeOf } from '../../../backend/src/protocol/block-header.js'
import { equalBytes } from '../../../backend/src/protocol/bytes.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import type { HeaderCheckpoint } from '../../../backend/src/protocol/header-checkpoints.js'
import type { HeaderStore } from '../../../backend/src/protocol/header-store.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { ChangedHeadersError, HeaderChain, type SourceTip, type Verdict } from '../headers/header-chain.js'
import { BackgroundJob, unlessLate } from '../sources/background.js'
import type { ChainTip } from '../sources/chain-source.js'
import { HeaderSource } from '../sources/header-source.js'
import type { HeaderSourceKind, SourceAddress } from '../sources/source-address.js'
import type { HeadersStatus } from '../sources/status.js'
import type { BlockHeaders } from './chain-tracker.js'

export interface FollowedHeadersOptions {
  store: HeaderStore
  sources: SourceAddress<HeaderSourceKind>[]
  checkpoint: HeaderCheckpoint
  network: 'main' | 'test'
  /** The most requests a second to each source; 10 by default. */
  rate?: number
  /** The timeout of a short request, in milliseconds. */
  timeout: number
  /** Milliseconds between rounds; 0: once the chain is complete, only on request. */
  pollInterval: number
  /**
   * Milliseconds before the sources are asked again while the chain is not known up to its tip, or after a failure of the store;
   * 1000 by default.
   */
  retryDelay?: number
  logger: Logger
  /** The clock, in milliseconds since 1970. */
  now?: () => number
}

const RATE = 10
/** After this many missed rounds, and at least this many milliseconds, the tip counts as unknown. */
const MISSED_ROUNDS = 3
const MISSED_TIME = 60_000
/** The interval of log lines about the progress, in milliseconds. */
const LOG_INTERVAL = 60_000
/** How long to wait, if no source has headers below the lowest, before asking again, in milliseconds. */
const BELOW_DELAY = 3_600_000
/** How many headers are fetched at once, if the service allows that many. */
const PAGE = 10_000
/** How long one source is asked before the next has its turn, in milliseconds. Its last answer may take longer. */
const TURN = 60_000
/** The most blocks that the chain may have lost since the last round. */
const NEAR_TIP = 100
/** The least time between rounds that a stream starts, in milliseconds. */
const STREAM_PAUSE = 1000
/** How long the sources' answers count as recent, in milliseconds: strangers cannot have them asked more often. */
const RECENT = 5000

/**
 * Our own chain of block headers: fetched from several sources, verified, and stored, so that checking a proof takes no request
 * (docs/follow.md).
 */
export class FollowedHeaders implements BlockHeaders {
  private readonly chain: HeaderChain
  private readonly sources: HeaderSource[]
  private readonly job = new BackgroundJob(() => this.step())
  private readonly rounds = new Mutex()
  private readonly listeners: ((tip: ChainTip) => void)[] = []
  /** The time of day, to compare block times with, and a clock for durations. */
  private readonly now: () => number
  private readonly clock: () => number
  private readonly retryDelay: number
  private opened: Promise<void> | undefined
  /** When the sources that answered were last followed to their tips; undefined before the first time. */
  private lastCheck: { at: number; shown: number } | undefined
  private lastError: HeadersStatus['lastError']
  /** Whether the last round failed for a reason other than a source. */
  private hasFailed = false
  /** The tip that the listeners were last called with. */
  private reported: { header: Uint8Array; tip: ChainTip } | undefined
  /** When to ask again for headers below the lowest. */
  private belowAt = Number.NEGATIVE_INFINITY
  /** When the next round is due, and how soon a stream may start it. */
  private next = { at: 0, soonest: 0 }
  private isWoken = false
  /** Emits `end` after each round. */
  private readonly roundEvents = new EventEmitter().setMaxListeners(0)
  /** Whether the last round asked sources and the chain did not grow; undefined before the first one. */
  private isStuck: boolean | undefined

  constructor(private readonly options: FollowedHeadersOptions) {
    const { store, sources, checkpoint, network, rate = RATE, timeout, logger } = options
    const { now, retryDelay = 1000 } = options
    const { signal } = this.job
    this.now = now ?? Date.now
    this.clock = now ?? monotonic
    this.retryDelay = retryDelay
    this.chain = new HeaderChain({
      ...{ store, checkpoint, network, now: this.now, clock: this.clock, page: PAGE, turn: TURN },
      ...{ hash: nativeHash256, slice: () => new TimeSlice() },
    })
    this.sources = sources.map(
      (address) =>
        new HeaderSource({
          ...{ address, rate, timeout, network, signal, logger, now },
          onTip: () => this.wake(),
        }),
    )
  }

  /** Starts following the sources. */
  start(): void {
    this.job.start()
    for (const source of this.sources) source.watch()
  }

  get outage(): string | undefined {
    const { chain, lastCheck } = this
    const { pollInterval } = this.options
    if (lastCheck === undefined) return chain.progress
    const limit = pollInterval === 0 ? Infinity : Math.max(MISSED_ROUNDS * pollInterval, MISSED_TIME)
    if (this.clock() - lastCheck.at <= limit) return undefined
    return `no source of block headers has responded since ${new Date(lastCheck.shown).toISOString()}`
  }

  /**
   * Whether the chain has a block, without a request. Above the checkpoint, `no` is said only while the sources respond:
   * otherwise the block may be in a branch that is not known here.
   */
  async verdict(block: Block): Promise<Verdict> {
    await this.open()
    const verdict = await this.chain.verdict(block)
    const isFinal = block.height <= this.options.checkpoint.height
    return verdict === 'no' && !isFinal && this.outage !== undefined ? 'unknown' : verdict
  }

  /** @throws ChainTrackerError if the header at that height is not known yet. */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    let verdict = await this.verdict({ root, height })
    if (verdict !== 'yes' && this.mayChange(height) && (await this.refreshIfOld()))
      verdict = await this.verdict({ root, height })
    if (verdict !== 'unknown') return verdict === 'yes'
    const { outage } = this
    if (outage === undefined && height > this.highest) return false
    throw new ChainTrackerError(
      `the block header at ${height} is not known yet${outage ? `: ${outage}` : ''}`,
    )
  }

  /** @throws ChainTrackerError until the chain was followed to its tip after the start. */
  async currentHeight(): Promise<number> {
    await this.firstRound()
    const { tip } = this.chain
    if (tip === undefined || this.lastCheck === undefined)
      throw new ChainTrackerError(this.outage ?? 'there are no block headers yet')
    return tip.height
  }

  async fetched(): Promise<void> {
    while (this.lastCheck === undefined && this.isStuck !== true) await once(this.roundEvents, 'end')
  }

  /** Asks the sources now, unless the chain is still being fetched. */
  async refresh(): Promise<void> {
    if (this.lastCheck !== undefined) await this.rounds.runExclusive(() => this.round({ isForced: true }))
  }

  /** Whether another round may know more about a height: a new block, or a branch that has won since the last round. */
  private mayChange(height: number): boolean {
    const { height: tip = 0 } = this.chain.tip ?? {}
    return this.outage === undefined && height > tip - NEAR_TIP && height <= this.highest
  }

  /** The greatest height that the chain can have reached since the last block, or since the sources were asked. */
  private get highest(): number {
    const { lastCheck } = this
    return this.chain.highest(lastCheck === undefined ? Infinity : this.clock() - lastCheck.at)
  }

  /** Asks the sources if the last answer is not recent, once for all callers. @returns Whether it was not. */
  private async refreshIfOld(): Promise<boolean> {
    const isOld = (): boolean => this.lastCheck !== undefined && this.clock() - this.lastCheck.at > RECENT
    if (!isOld()) return false
    await this.rounds.runExclusive(async () => {
      if (isOld()) await this.round()
    })
    return true
  }

  status(): HeadersStatus {
    const { tip, from } = this.chain
    return {
      ...(tip && {
        ...{ height: tip.height, hash: this.chain.shownHash(tip.header), time: timeOf(tip.header), from },
      }),
      ...(this.lastError && { lastError: this.lastError }),
      sources: this.sources.map(({ client }) => client.status),
    }
  }

  onTip(listener: (tip: ChainTip) => void): void {
    this.listeners.push(listener)
    if (this.reported !== undefined) listener(this.reported.tip)
  }

  async close(): Promise<void> {
    const stopped = this.job.stop()
    await Promise.all(this.sources.map((source) => source.close()))
    await stopped
    await this.rounds.waitForUnlock()
  }

  /** @returns Milliseconds until the next step. */
  private async step(): Promise<number> {
    const { next } = this
    if (this.isWoken) next.at = Math.min(next.at, next.soonest)
    this.isWoken = false
    const now = this.clock()
    if (now >= next.at) {
      await this.rounds.runExclusive(() => this.round())
      this.roundEvents.emit('end')
      const isSoon = this.lastCheck === undefined || this.hasFailed
      const pause = isSoon ? this.retryDelay : this.options.pollInterval || Infinity
      next.at = this.clock() + pause
      next.soonest = this.clock() + STREAM_PAUSE
      return 0
    }
    if (this.isIncomplete && now >= this.belowAt) {
      await this.rounds.runExclusive(() => this.extendBelow())
      return 0
    }
    const until = this.isIncomplete ? Math.min(next.at, this.belowAt) : next.at
    return Math.min(until - now, BELOW_DELAY)
  }

  /** Starts the next round now. */
  private wake(): void {
    this.isWoken = true
    this.job.wake()
  }

  private get isIncomplete(): boolean {
    return this.lastCheck !== undefined && this.chain.from > 0
  }

  /** Reads the stored chain, once. */
  private async open(): Promise<void> {
    this.opened ??= this.chain.load()
    try {
      await this.opened
    } catch (cause) {
      this.opened = undefined
      throw cause
    }
  }

  /** Waits for the first round to end, up to the timeout. */
  private async firstRound(): Promise<void> {
    if (this.isStuck !== undefined) return
    await unlessLate(once(this.roundEvents, 'end'), this.options.timeout)
  }

  /** Follows each source to its tip, and reports what changed. */
  private async round({ isForced = false } = {}): Promise<void> {
    const { chain, sources } = this
    let forkedAt = Infinity
    let followed = 0
    let isStuck = true
    try {
      this.opened = chain.load()
      await this.opened
      const known = chain.tip?.height
      if (isForced) for (const { client } of sources) client.endRest()
      const asked = sources.filter(({ isResting }) => !isResting)
      const tips = await Promise.all(
        asked.map((source) => source.client.attempt(() => source.tip(), { isPart: true })),
      )
      for (const [index, source] of asked.entries()) {
        const tip = tips[index]
        if (tip === undefined) continue
        const isFollowed = await source.client.attempt(() =>
          this.follow(source, tip, (height) => {
            forkedAt = Math.min(forkedAt, height)
          }),
        )
        if (isFollowed) followed++
      }
      isStuck = asked.length > 0 && chain.tip?.height === known
      this.hasFailed = false
    } catch (error) {
      if (!this.job.signal.aborted) this.failed(error)
    }
    this.isStuck = isStuck
    if (followed > 0 && chain.hasEnoughWork) this.checked()
    this.report(forkedAt)
  }

  private async follow(
    source: HeaderSource,
    tip: SourceTip,
    onFork: (height: number) => void,
  ): Promise<boolean> {
    const { chain } = this
    const progress = setInterval(() => this.options.logger.info(chain.progress), LOG_INTERVAL).unref()
    try {
      return await chain.follow(source, { tip, onFork })
    } finally {
      clearInterval(progress)
      // Another process may have been faster, and have stored what this source has.
      await chain.load()
    }
  }

  /** Adds headers below the lowest one, from the first source that has some. After a failure, a round may come first. */
  private async extendBelow(): Promise<void> {
    const { chain, sources } = this
    const { logger } = this.options
    this.belowAt = this.clock() + BELOW_DELAY
    try {
      for (const source of sources.filter(({ isResting }) => !isResting)) {
        const hasSome = await source.client.attempt(() => chain.extendBelow(source))
        if (hasSome === false) continue
        this.belowAt = 0
        if (hasSome && chain.from === 0)
          logger.info({ height: chain.tip?.height }, 'all block headers are stored')
        return
      }
      if (sources.some(({ isResting }) => isResting)) this.belowAt = this.clock() + this.retryDelay
    } catch (error) {
      this.belowAt = this.clock() + this.retryDelay
      if (!this.job.signal.aborted) this.failed(error)
    }
  }

  /** Notes that a source was followed to its tip. */
  private checked(): void {
    const { chain, lastCheck } = this
    this.lastCheck = { at: this.clock(), shown: this.now() }
    if (lastCheck !== undefined) return
    const { from, tip } = chain
    this.options.logger.info({ from, height: tip?.height }, 'block headers are known up to the tip')
  }

  private report(forkedAt: number): void {
    const { tip } = this.chain
    if (tip === undefined || this.lastCheck === undefined) return
    if (this.reported !== undefined && equalBytes(this.reported.header, tip.header)) return
    const { height, header } = tip
    const latest = { height, hash: this.chain.shownHash(header) }
    this.reported = { header, tip: latest }
    const isFork = forkedAt !== Infinity
    if (isFork) this.options.logger.warn({ forkedAt, height }, 'the chain was reorganised')
    for (const listener of this.listeners) listener({ ...latest, ...(isFork && { forkedAt }) })
  }

  private failed(error: unknown): void {
    const { logger } = this.options
    if (error instanceof ChangedHeadersError) {
      logger.debug({ err: error }, 'another process has changed the block headers; the next round continues')
      return
    }
    this.lastError = { at: this.now(), message: messageOf(error) }
    // An outage of the store is reported once.
    logger[this.hasFailed ? 'debug' : 'error'](
      { err: error },
      'could not update the block headers; will retry',
    )
    this.hasFailed = true
  }
}
