import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import type { Block } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { Verdict } from '../headers/header-chain.js'
import type { ChainTip } from '../sources/chain-source.js'
import type { LastError } from '../sources/errors.js'
import type { BlockHeaders, HeadersStatus } from './chain-tracker.js'

/** A chain tracker of any copy of the SDK. */
export interface GivenTracker {
  isValidRootForHeight(root: string, height: number): Promise<boolean>
  currentHeight(): Promise<number>
}

/** One that may be closed, may know the hash of its tip, and may say when it has a new one. */
export interface AskedTracker extends GivenTracker {
  tip?(): Promise<ChainTip>
  watch?(onTip: () => void): void
  close?(): Promise<void>
}

/** For how long an answer is recent, in milliseconds. */
const RECENT = 5000

/**
 * A chain tracker that is asked about each block, and believed: that of another host, or a service. It shows no headers, and says no
 * of what it does not know, too.
 */
export class GivenHeaders implements BlockHeaders {
  private readonly listeners: ((tip: ChainTip) => void)[] = []
  private downSince: Date | undefined
  private lastError: LastError | undefined
  private tip: ChainTip | undefined
  /** When the last answer came, or failed to. */
  private askedAt = Number.NEGATIVE_INFINITY
  private isClosed = false

  /** @param options.name For messages, which anybody may read. */
  constructor(private readonly options: { tracker: AskedTracker; name: string }) {}

  /** The last question failed. If that was not lately, it is asked again for the next time, as nobody may submit anything meanwhile. */
  get outage(): string | undefined {
    if (!this.isClosed && monotonic() - this.askedAt > RECENT) this.probe()
    const since = this.downSince?.toISOString()
    return since && `the chain tracker ${this.options.name} has not responded since ${since}`
  }

  async verdict(block: Block): Promise<Verdict> {
    if (await this.isValidRootForHeight(block.root, block.height)) return 'yes'
    return (await this.currentHeight()) < block.height ? 'unknown' : 'no'
  }

  isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return this.ask((tracker) => tracker.isValidRootForHeight(root, height))
  }

  async currentHeight(): Promise<number> {
    const tip = await this.ask(async (tracker) => await (tracker.tip?.() ?? heightOf(tracker)))
    const isNew = tip.height !== this.tip?.height || tip.hash !== this.tip.hash
    this.tip = tip
    if (isNew && !this.isClosed) for (const listener of this.listeners) listener(tip)
    return tip.height
  }

  status(): HeadersStatus {
    const { tip, lastError } = this
    return { ...(tip && { height: tip.height }), ...(lastError && { lastError }) }
  }

  /** A new tip is seen when the height is asked for, and when the tracker says that there is one. */
  onTip(listener: (tip: ChainTip) => void): void {
    if (this.listeners.push(listener) === 1) this.options.tracker.watch?.(() => this.probe())
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.options.tracker.close?.()
  }

  private probe(): void {
    // Many read whether this host is ready; one of them asks.
    this.askedAt = monotonic()
    this.currentHeight().catch(() => {})
  }

  private async ask<Answer>(question: (tracker: AskedTracker) => Promise<Answer>): Promise<Answer> {
    const { tracker, name } = this.options
    try {
      const answer = await question(tracker)
      this.downSince = undefined
      return answer
    } catch (cause) {
      this.downSince ??= new Date()
      this.lastError = { at: Date.now(), message: messageOf(cause) }
      throw new ChainTrackerError(`the chain tracker ${name} did not respond`, { cause })
    } finally {
      this.askedAt = monotonic()
    }
  }
}

async function heightOf(tracker: GivenTracker): Promise<ChainTip> {
  return { height: await tracker.currentHeight() }
}
