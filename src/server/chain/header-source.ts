import type { Logger } from 'pino'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { SourceError } from '../../client/errors.js'
import type { HeaderSourceAddress } from '../config/header-settings.js'
import type { HeaderSourceStatus } from './chain-tracker.js'
import type { ChaintracksStreams } from './chaintracks-streams.js'
import { type HeaderFetcher, HeaderSourceError, openFetcher, openStreams } from './header-fetcher.js'
import { InvalidHeadersError } from './header-rules.js'

/** How long a source rests after a failure, in milliseconds: at first; twice as long after each further one; and at most. */
const FIRST_REST = 1000
const LONGEST_REST = 600_000

/** The faults of a source, other than those of this host. */
const FAULTS = [HeaderSourceError, InvalidHeadersError, SourceError]

/** A source of block headers with what is known of it: one that fails is left alone for a while. */
export class HeaderSource {
  /** Its kind and origin: a path may contain a key. */
  readonly name: string
  readonly fetcher: HeaderFetcher
  private readonly counts = { requests: 0, failures: 0 }
  /** Failures since the last success. */
  private failed = 0
  private restingUntil = 0
  private lastError: HeaderSourceStatus['lastError']
  private streams: ChaintracksStreams | undefined

  constructor(
    private readonly options: {
      address: HeaderSourceAddress
      timeout: number
      network: 'main' | 'test'
      signal: AbortSignal
      logger: Logger
      now: () => number
    },
  ) {
    const { address } = options
    this.name = `${address.kind} ${new URL(address.url).origin}`
    const { tip, headers } = openFetcher(address, options)
    const counted = <Answer>(answer: Promise<Answer>): Promise<Answer> => {
      this.counts.requests++
      return answer
    }
    this.fetcher = { tip: () => counted(tip()), headers: (query) => counted(headers(query)) }
  }

  get isResting(): boolean {
    return this.options.now() < this.restingUntil
  }

  /**
   * Runs work that asks the source.
   *
   * @returns Its result; undefined if the source failed, which then rests.
   * @throws what is not the fault of the source.
   */
  async try<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      const result = await work()
      this.failed = 0
      this.restingUntil = 0
      return result
    } catch (error) {
      if (this.options.signal.aborted || !FAULTS.some((fault) => error instanceof fault)) throw error
      this.rest(error)
      return undefined
    }
  }

  status(): HeaderSourceStatus {
    const { name, counts, isResting, restingUntil, lastError } = this
    return {
      ...{ name, state: isResting ? 'resting' : 'ok', ...counts },
      ...(isResting && { restingUntil }),
      ...(lastError && { lastError }),
    }
  }

  /** Listens to the event streams of the source, if it has any. */
  watch(onTip: () => void): void {
    if (this.streams !== undefined || this.options.signal.aborted) return
    this.streams = openStreams(this.options.address, onTip)
    this.streams?.start()
  }

  async close(): Promise<void> {
    await this.streams?.close()
  }

  private rest(error: unknown): void {
    const { now, logger, address } = this.options
    this.failed++
    this.counts.failures++
    const asked = error instanceof HeaderSourceError ? error.retryAfter : undefined
    const usual = Math.min(LONGEST_REST, FIRST_REST * 2 ** (this.failed - 1))
    this.restingUntil = now() + Math.max(usual, asked ?? 0)
    const message = messageOf(error).replaceAll(address.url, new URL(address.url).origin)
    this.lastError = { at: now(), message }
    // A source that stays away is reported once.
    const level = this.failed === 1 ? 'warn' : 'debug'
    logger[level]({ source: this.name, reason: message }, 'a source of block headers failed')
  }
}
