import { answeredWithin } from '../../../backend/src/graph/answered-within.js'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import { type Block, blockText } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import type { Verdict } from '../headers/header-chain.js'
import type { ChainTip } from '../sources/chain-source.js'
import type { HeadersStatus, LastError } from '../sources/status.js'
import type { BlockHeaders } from './chain-tracker.js'

/** A chain tracker of any copy of the SDK. */
export interface GivenTracker {
  isValidRootForHeight(root: string, height: number): Promise<boolean>
  currentHeight(): Promise<number>
}

/** How long an answer counts as recent, in milliseconds. */
const RECENT = 5000

/** The chain tracker of another host, which is trusted. It shows no headers, and also says no to blocks that it does not know. */
export class GivenHeaders implements BlockHeaders {
  private readonly listeners: ((tip: ChainTip) => void)[] = []
  private downSince: Date | undefined
  private lastError: LastError | undefined
  private height: number | undefined
  /** When the last question was answered or failed. */
  private askedAt = Number.NEGATIVE_INFINITY
  private isClosed = false
  /** Pending questions: many transactions of one block come together. */
  private readonly questions = new Map<string, Promise<boolean>>()

  /** @param timeout How long an answer may take, in milliseconds. */
  constructor(
    private readonly tracker: GivenTracker,
    private readonly timeout: number,
  ) {}

  /** Set if the last question failed. After a while, the tracker is asked again in the background: nobody may submit until then. */
  get outage(): string | undefined {
    if (!this.isClosed && monotonic() - this.askedAt > RECENT) this.probe()
    const since = this.downSince?.toISOString()
    return since && `the chain tracker of the host has not responded since ${since}`
  }

  async verdict(block: Block): Promise<Verdict> {
    if (await this.isValidRootForHeight(block.root, block.height)) return 'yes'
    return (await this.currentHeight()) < block.height ? 'unknown' : 'no'
  }

  isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const key = blockText({ root, height })
    const asked =
      this.questions.get(key) ??
      this.answered(() => this.tracker.isValidRootForHeight(root, height)).finally(() =>
        this.questions.delete(key),
      )
    this.questions.set(key, asked)
    return asked
  }

  async currentHeight(): Promise<number> {
    const height = await this.answered(() => this.tracker.currentHeight())
    const isNew = height !== this.height
    this.height = height
    if (isNew && !this.isClosed) for (const listener of this.listeners) listener({ height })
    return height
  }

  status(): HeadersStatus {
    const { height, lastError } = this
    return { ...(height !== undefined && { height }), ...(lastError && { lastError }) }
  }

  /** A new tip is noticed only when the height is asked for. */
  onTip(listener: (tip: ChainTip) => void): void {
    this.listeners.push(listener)
    if (this.height !== undefined) listener({ height: this.height })
  }

  async close(): Promise<void> {
    this.isClosed = true
  }

  private probe(): void {
    // Many callers read whether this host is ready; only one of them asks.
    this.askedAt = monotonic()
    this.currentHeight().catch(() => {})
  }

  private async answered<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    try {
      const { timeout } = this
      const error = (): Error => new Error(`it did not answer within ${timeout} ms`)
      const answer = await answeredWithin(timeout, question, { error })
      this.downSince = undefined
      return answer
    } catch (cause) {
      this.downSince ??= new Date()
      this.lastError = { at: Date.now(), message: messageOf(cause) }
      throw new ChainTrackerError('the chain tracker of the host did not respond', { cause })
    } finally {
      this.askedAt = monotonic()
    }
  }
}
