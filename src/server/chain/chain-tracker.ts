import { setTimeout as setTimer } from 'node:timers'
import {
  BlockHeadersService,
  type ChainTracker,
  type HttpClient,
  type HttpClientResponse,
  WhatsOnChain,
} from '@bsv/sdk'
import pLimit, { type LimitFunction } from 'p-limit'
import { z } from 'zod'
import type { Block } from '../../../backend/src/graph/records.js'
import { boundedHttpClient } from '../../client/bounded-fetch.js'
import type { Config } from '../config/config.js'
import { LIMITS, type Limits } from '../config/limits.js'
import { ChainTrackerError, SubmissionTooLargeError } from '../submission/submission-errors.js'
import type { SubmissionTracker } from '../submission/verify-submission.js'

/** What a chain tracker says of a block: its chain has it, has another one at that height, or none yet that it knows of. */
export type Verdict = 'yes' | 'no' | 'unknown'

/** What answers of a service mean. The SDK takes whatever is not a yes for a no, be it a greeting. */
interface Dialect {
  /** The SDK's client of the service. */
  open(http: HttpClient): ChainTracker
  /** What an answer says of the block that was asked about. @throws where it is an answer to something else. */
  verdict(response: HttpClientResponse<unknown>, asked: Block): Verdict
  /** @throws where it tells no height. */
  checkTip(data: unknown): void
}

const height = z.int().nonnegative()

const hash = z.string().regex(/^[0-9a-f]{64}$/i)

function headersService(url: string): Dialect {
  const state = z.enum(['CONFIRMED', 'INVALID', 'UNCONFIRMED', 'UNABLE_TO_VERIFY'])
  const answer = z.object({ confirmationState: state })
  const confirmed = z.object({
    confirmations: z
      .array(z.object({ blockHeight: height, merkleRoot: hash, confirmation: z.literal('CONFIRMED') }))
      .length(1),
  })
  return {
    open: (httpClient) => new BlockHeadersService(url, { httpClient }),
    verdict({ data }, asked) {
      const { confirmationState } = answer.parse(data)
      if (confirmationState !== 'CONFIRMED') return confirmationState === 'INVALID' ? 'no' : 'unknown'
      const [block] = confirmed.parse(data).confirmations
      if (block?.blockHeight !== asked.height || block.merkleRoot.toLowerCase() !== asked.root)
        throw new Error(`asked about the block at ${asked.height}, it confirmed another one`)
      return 'yes'
    },
    checkTip: (data) => void z.object({ height }).parse(data),
  }
}

function whatsOnChain(network: Config['network']): Dialect {
  const header = z.object({ height, merkleroot: hash })
  return {
    open: (httpClient) => new WhatsOnChain(network, { httpClient }),
    verdict({ status, data }, asked) {
      if (status === 404) return 'unknown'
      const block = header.parse(data)
      if (block.height !== asked.height)
        throw new Error(`asked about the block at ${asked.height}, it described another one`)
      return block.merkleroot === asked.root ? 'yes' : 'no'
    },
    checkTip: (data) => void z.tuple([z.object({ height })], z.unknown()).parse(data),
  }
}

/** How long after a failure the tracker is asked whether it is back, in milliseconds. */
const PROBE_INTERVAL = 5000

/** The longest answer of a service that is read, in bytes: the longest that is asked for, ten headers, has some 5 KB. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** What asking may cost. */
export type TrackerLimits = Pick<Limits, 'maxTrackerBlocks' | 'maxTrackerRequests' | 'verificationTimeout'>

const USUAL: TrackerLimits = {
  maxTrackerBlocks: LIMITS.maxTrackerBlocks.usual,
  maxTrackerRequests: LIMITS.maxTrackerRequests.usual,
  verificationTimeout: LIMITS.verificationTimeout.usual,
}

/**
 * A chain tracker. Of every failure it says that it is the tracker's, and not the transaction's. No more questions than the
 * limits say are under way at once, whoever asks; the others wait, first come first served.
 */
export class HeadersSource implements ChainTracker {
  private readonly name: string
  private readonly dialect: Dialect
  /** How long an answer may take, in milliseconds; other submissions wait meanwhile. */
  private readonly timeout: number
  private readonly limits: TrackerLimits
  private readonly queue: LimitFunction
  private silentSince: Date | undefined
  private probing: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(options: { name: string; dialect: Dialect; timeout: number; limits?: TrackerLimits }) {
    const { limits = USUAL } = options
    this.name = options.name
    this.dialect = options.dialect
    this.timeout = options.timeout
    this.limits = limits
    this.queue = pLimit(limits.maxTrackerRequests)
  }

  /** Why no proof can be checked: it did not answer when it was asked last. Undefined while it does. */
  get outage(): string | undefined {
    const since = this.silentSince?.toISOString()
    return since && `the chain tracker ${this.name} has not responded since ${since}`
  }

  /** A tracker for one submission, which is asked about each block once, and not about more than the limits say. */
  forSubmission(): OnceAsked {
    const { maxTrackerBlocks: maxBlocks, verificationTimeout: timeout } = this.limits
    return new OnceAsked(this, { maxBlocks, timeout })
  }

  /**
   * Whether the chain has a block. A no is one of a tracker that has come that far: one that lies behind has no say about
   * what it has not seen.
   *
   * @throws ChainTrackerError where it does not answer.
   */
  async verdict(block: Block): Promise<Verdict> {
    const verdict = await this.word(block)
    return verdict === 'no' && (await this.currentHeight()) < block.height ? 'unknown' : verdict
  }

  /** @throws ChainTrackerError where it does not answer. */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return (await this.word({ root, height })) === 'yes'
  }

  /** @throws ChainTrackerError where it does not answer. */
  async currentHeight(): Promise<number> {
    return await this.queue(() => this.askTip())
  }

  /** Asks no more whether it is back. */
  close(): void {
    this.isClosed = true
    clearTimeout(this.probing)
  }

  private async askTip(): Promise<number> {
    const tracker = this.open(({ data }) => this.dialect.checkTip(data))
    return await this.ask(() => tracker.currentHeight())
  }

  private async word(block: Block): Promise<Verdict> {
    const answers: Verdict[] = []
    const tracker = this.open((response) => answers.push(this.dialect.verdict(response, block)))
    await this.queue(() => this.ask(() => tracker.isValidRootForHeight(block.root, block.height)))
    // The client's own word is left alone: it takes whatever is not a yes for a no.
    return answers.at(-1) ?? 'unknown'
  }

  /** The SDK's client, which shows each answer that it would believe. */
  private open(check: (response: HttpClientResponse<unknown>) => unknown): ChainTracker {
    const http = boundedHttpClient({ timeout: this.timeout, maxBytes: MAX_ANSWER_BYTES })
    return this.dialect.open({
      async request<Body>(...question: Parameters<HttpClient['request']>) {
        const response = await http.request<Body>(...question)
        if (response.ok || response.status === 404) check(response)
        return response
      },
    })
  }

  private async ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await question()
      this.silentSince = undefined
      return answer
    } catch (cause) {
      this.silentSince ??= new Date()
      this.probeLater()
      throw new ChainTrackerError(`the chain tracker ${this.name} did not respond`, { cause })
    }
  }

  /** Where nobody submits anything, nobody would ask again. */
  private probeLater(): void {
    if (this.isClosed) return
    clearTimeout(this.probing)
    this.probing = setTimer(() => {
      // A failure has been noted by then, and is followed by the next probe.
      if (this.silentSince !== undefined) this.currentHeight().catch(() => {})
    }, PROBE_INTERVAL).unref()
  }
}

/** Over the blocks that the chain tracker is asked about for one submission. */
class TooManyBlocksError extends SubmissionTooLargeError {
  constructor(maxBlocks: number) {
    super(`the proofs of a submission may lead to at most ${maxBlocks} blocks`)
  }
}

/**
 * Asks about each block once, for one submission, which may bring many transactions of one block. Kept for longer, an
 * answer would hide a reorg.
 */
export class OnceAsked implements SubmissionTracker {
  private readonly answers = new Map<string, Promise<boolean>>()
  private readonly maxBlocks: number
  private readonly end: number
  private tip: Promise<number> | undefined

  /**
   * @param limits.maxBlocks How many blocks it asks about. Without it, any number.
   * @param limits.timeout How long it goes on asking, in milliseconds. Without it, for ever.
   */
  constructor(
    private readonly tracker: ChainTracker,
    { maxBlocks = Infinity, timeout = Infinity }: { maxBlocks?: number; timeout?: number } = {},
  ) {
    this.maxBlocks = maxBlocks
    this.end = performance.now() + timeout
  }

  /** @throws SubmissionTooLargeError */
  requireFew(blocks: number): void {
    if (blocks > this.maxBlocks) throw new TooManyBlocksError(this.maxBlocks)
  }

  /** @throws SubmissionTooLargeError for one block too many; ChainTrackerError where the time is over, and as the tracker. */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const key = `${height} ${root}`
    const known = this.answers.get(key)
    if (known !== undefined) return await known
    this.requireFew(this.answers.size + 1)
    this.requireTime()
    const answer = this.tracker.isValidRootForHeight(root, height)
    this.answers.set(key, answer)
    return await answer
  }

  async currentHeight(): Promise<number> {
    this.requireTime()
    this.tip ??= this.tracker.currentHeight()
    return await this.tip
  }

  private requireTime(): void {
    if (performance.now() > this.end)
      throw new ChainTrackerError(
        'the chain tracker is too slow to answer about all blocks of the submission',
      )
  }
}

/** The chain tracker that the settings name; undefined where proofs are not checked. */
export function openHeadersSource(
  config: Pick<Config, 'chainTracker' | 'chainTrackerTimeout' | 'network'> & { limits?: TrackerLimits },
): HeadersSource | undefined {
  const { chainTracker, chainTrackerTimeout: timeout, network, limits = USUAL } = config
  if (chainTracker === 'scripts-only') return undefined
  const dialect = chainTracker === 'whatsonchain' ? whatsOnChain(network) : headersService(chainTracker)
  return new HeadersSource({ name: trackerName(chainTracker), dialect, timeout, limits })
}

/** What is said of the setting: of a URL no more than its origin, as keys stand in the rest. */
export function trackerName(chainTracker: string): string {
  return URL.canParse(chainTracker) ? new URL(chainTracker).origin : chainTracker
}
