import { setTimeout as setTimer } from 'node:timers'
import {
  BlockHeadersService,
  type ChainTracker,
  type HttpClient,
  type HttpClientResponse,
  WhatsOnChain,
} from '@bsv/sdk'
import pLimit, { type LimitFunction } from 'p-limit'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import { type Block, blockText, type SpendRecord } from '../../../backend/src/graph/records.js'
import { boundedHttpClient } from '../../client/bounded-fetch.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import { LIMITS, type Limits } from '../config/limits.js'

/** What a chain tracker says of a block: its chain has it, has another at that height, or does not know of one there yet. */
export type Verdict = 'yes' | 'no' | 'unknown'

/** How a service is asked, and what its answers mean. The SDK takes anything but a yes for a no, even a greeting. */
interface Dialect {
  open(http: HttpClient): ChainTracker
  /** What a response says of a block. @throws if it is about something else. */
  verdict(response: HttpClientResponse<unknown>, asked: Block): Verdict
  /** @throws if a response has no height. */
  checkTip(data: unknown): void
}

/** The source of block headers did not answer, so nothing is known about a proof: the caller may try again. */
export class ChainTrackerError extends AnswerError {
  override readonly name = 'ChainTrackerError'
  readonly code = 'NOT_READY'
  override readonly headers = { 'Retry-After': '5' }
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
        throw new Error(`asked about the block at ${asked.height}, it confirms another one`)
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
        throw new Error(`asked about the block at ${asked.height}, it describes another one`)
      return block.merkleroot === asked.root ? 'yes' : 'no'
    },
    checkTip: (data) => void z.tuple([z.object({ height })], z.unknown()).parse(data),
  }
}

/** How long after a failure the tracker is probed, in milliseconds. */
const PROBE_INTERVAL = 5000

/** The longest response that is read, in bytes: the longest that is requested, ten headers, has some 5 KB. */
const MAX_ANSWER_BYTES = 1024 * 1024

type HeadersSettings = Pick<Config, 'chainTracker' | 'chainTrackerTimeoutMs' | 'network'> & {
  limits?: Pick<Limits, 'maxTrackerRequests'>
}

/**
 * A chain tracker whose failures are its own errors, not those of the transaction. It limits how many requests are in
 * progress at once; the others wait, first come first served.
 */
export class HeadersSource implements ChainTracker {
  private readonly name: string
  private readonly dialect: Dialect
  private readonly queue: LimitFunction
  private downSince: Date | undefined
  private probing: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(private readonly settings: HeadersSettings) {
    const { chainTracker, network, limits } = settings
    this.name = trackerName(chainTracker)
    this.dialect = chainTracker === 'whatsonchain' ? whatsOnChain(network) : headersService(chainTracker)
    this.queue = pLimit(limits?.maxTrackerRequests ?? LIMITS.maxTrackerRequests.usual)
  }

  /** Why proofs cannot be checked: the last request failed. Undefined if it succeeded. */
  get outage(): string | undefined {
    const since = this.downSince?.toISOString()
    return since && `the chain tracker ${this.name} has not responded since ${since}`
  }

  /**
   * Whether the chain has a block. `no` only from a tracker whose chain is that long: one that lags behind cannot know.
   *
   * @throws ChainTrackerError if it does not answer.
   */
  async verdict(block: Block): Promise<Verdict> {
    const verdict = await this.askVerdict(block)
    return verdict === 'no' && (await this.currentHeight()) < block.height ? 'unknown' : verdict
  }

  /** @throws ChainTrackerError if it does not answer. */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return (await this.askVerdict({ root, height })) === 'yes'
  }

  /** @throws ChainTrackerError if it does not answer. */
  async currentHeight(): Promise<number> {
    return await this.queue(() => this.askTip())
  }

  close(): void {
    this.isClosed = true
    clearTimeout(this.probing)
  }

  private async askTip(): Promise<number> {
    const tracker = this.open(({ data }) => this.dialect.checkTip(data))
    return await this.ask(() => tracker.currentHeight())
  }

  private async askVerdict(block: Block): Promise<Verdict> {
    const answers: Verdict[] = []
    const tracker = this.open((response) => answers.push(this.dialect.verdict(response, block)))
    await this.queue(() => this.ask(() => tracker.isValidRootForHeight(block.root, block.height)))
    // The client's own result is ignored: it takes anything but a yes for a no.
    return answers.at(-1) ?? 'unknown'
  }

  /** The SDK's client, with each response that it would believe checked first. */
  private open(check: (response: HttpClientResponse<unknown>) => unknown): ChainTracker {
    const http = boundedHttpClient({
      timeout: this.settings.chainTrackerTimeoutMs,
      maxBytes: MAX_ANSWER_BYTES,
    })
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
      this.downSince = undefined
      return answer
    } catch (cause) {
      this.downSince ??= new Date()
      this.probeLater()
      throw new ChainTrackerError(`the chain tracker ${this.name} did not respond`, { cause })
    }
  }

  /** Without submissions, nothing else would notice that it is back. */
  private probeLater(): void {
    if (this.isClosed) return
    clearTimeout(this.probing)
    this.probing = setTimer(() => {
      if (this.downSince !== undefined) this.currentHeight().catch(() => {})
    }, PROBE_INTERVAL).unref()
  }
}

/** The chain tracker in the settings; undefined if proofs are not checked. */
export function openHeadersSource(settings: HeadersSettings): HeadersSource | undefined {
  return settings.chainTracker === 'scripts-only' ? undefined : new HeadersSource(settings)
}

/** The name of a tracker for logs: of a URL only the origin, as the rest may contain keys. */
export function trackerName(chainTracker: string): string {
  return URL.canParse(chainTracker) ? new URL(chainTracker).origin : chainTracker
}

/** Checks stored proofs against the chain as it is now. Without a source of headers, they are believed. */
export class ProofVerifier {
  constructor(
    private readonly options: {
      headers: HeadersSource | undefined
      graph: Pick<GraphStore, 'disprove' | 'blocks'>
      logger: Logger
    },
  ) {}

  get headers(): HeadersSource | undefined {
    return this.options.headers
  }

  /** @throws ChainTrackerError if the tracker does not answer. */
  async verdict(block: Block): Promise<Verdict> {
    return (await this.headers?.verdict(block)) ?? 'yes'
  }

  /**
   * Removes the proofs that lead to a block which the tracker refused. The caller has held the write lock since it asked, so
   * that none of these proofs came again meanwhile.
   *
   * @returns How many transactions lost their proof.
   */
  async disprove(block: Block): Promise<number> {
    const { graph, logger } = this.options
    const transactions = await graph.disprove(block)
    if (transactions > 0)
      logger.warn(
        { ...block, transactions },
        'the chain has another block at that height: removed the proofs that lead to it',
      )
    return transactions
  }

  /**
   * Does so for the blocks of transactions in conflict with proven ones that are about to be recorded: a chain has one of the
   * two, so the proof of the other is out of date, and must not win by its height. Without that proof, a descendant may
   * still give it a height: its block is asked about as well.
   *
   * @throws ChainTrackerError if the tracker does not answer.
   */
  async disproveConflicts(spends: SpendRecord[]): Promise<void> {
    if (this.headers === undefined) return
    const asked = new Set<string>()
    for (let isChanged = true; isChanged; ) {
      isChanged = false
      for (const block of await this.options.graph.blocks.ofConflicts(spends)) {
        if (asked.has(blockText(block))) continue
        asked.add(blockText(block))
        if ((await this.verdict(block)) !== 'no') continue
        await this.disprove(block)
        isChanged = true
      }
    }
  }
}
