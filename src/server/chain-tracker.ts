import { setTimeout } from 'node:timers/promises'
import {
  BlockHeadersService,
  type ChainTracker,
  defaultHttpClient,
  type HttpClient,
  type HttpClientResponse,
  WhatsOnChain,
} from '@bsv/sdk'
import { z } from 'zod'
import type { Block } from '../../backend/src/graph/records.js'
import type { Config } from './config.js'
import { ChainTrackerError } from './overlay-errors.js'

/** What a chain tracker says of a block: its chain has it, has another one at that height, or none yet that it knows of. */
export type Verdict = 'yes' | 'no' | 'unknown'

/** What answers of a service mean. The SDK takes whatever is not a yes for a no, be it a greeting. */
interface Dialect {
  /** The SDK's client of the service. */
  open(http: HttpClient): ChainTracker
  /** Of an answer that the client takes for no yes, which it is. @throws where it is an answer to something else. */
  verdict(response: HttpClientResponse<unknown>): Verdict
  /** @throws where it tells no height. */
  checkTip(data: unknown): void
}

const height = z.int().nonnegative()

function headersService(url: string): Dialect {
  const states = z.enum(['CONFIRMED', 'INVALID', 'UNCONFIRMED', 'UNABLE_TO_VERIFY'])
  return {
    open: (httpClient) => new BlockHeadersService(url, { httpClient }),
    verdict({ data }) {
      const { confirmationState } = z.object({ confirmationState: states }).parse(data)
      return confirmationState === 'INVALID' ? 'no' : 'unknown'
    },
    checkTip: (data) => void z.object({ height }).parse(data),
  }
}

function whatsOnChain(network: Config['network']): Dialect {
  const root = z.string().regex(/^[0-9a-f]{64}$/)
  return {
    open: (httpClient) => new WhatsOnChain(network, { httpClient }),
    verdict({ status, data }) {
      if (status === 404) return 'unknown'
      z.object({ merkleroot: root }).parse(data)
      return 'no'
    },
    checkTip: (data) => void z.tuple([z.object({ height })], z.unknown()).parse(data),
  }
}

/** A chain tracker. Of every failure it says that it is the tracker's, and not the transaction's. */
export class HeadersSource implements ChainTracker {
  private readonly name: string
  private readonly dialect: Dialect
  /** How long an answer may take, in milliseconds; other submissions wait meanwhile. */
  private readonly timeout: number

  constructor(options: { name: string; dialect: Dialect; timeout: number }) {
    this.name = options.name
    this.dialect = options.dialect
    this.timeout = options.timeout
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
    const tracker = this.open(({ data }) => this.dialect.checkTip(data))
    return await this.ask(() => tracker.currentHeight())
  }

  private async word({ root, height }: Block): Promise<Verdict> {
    let otherwise: Verdict = 'unknown'
    const tracker = this.open((response) => {
      otherwise = this.dialect.verdict(response)
    })
    const held = await this.ask(() => tracker.isValidRootForHeight(root, height))
    return held ? 'yes' : otherwise
  }

  /** The SDK's client, which shows each answer that it would believe. */
  private open(check: (response: HttpClientResponse<unknown>) => void): ChainTracker {
    const http = defaultHttpClient()
    return this.dialect.open({
      async request<Body>(...question: Parameters<HttpClient['request']>) {
        const response = await http.request<Body>(...question)
        if (response.ok || response.status === 404) check(response)
        return response
      },
    })
  }

  private async ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    const giveUp = new AbortController()
    try {
      return await Promise.race([question(), silence(this.timeout, giveUp.signal)])
    } catch (cause) {
      throw new ChainTrackerError(`the chain tracker ${this.name} did not answer`, { cause })
    } finally {
      giveUp.abort()
    }
  }
}

/** Throws after so many milliseconds, unless nobody waits any more. The SDK's trackers would wait for ever. */
async function silence(milliseconds: number, signal: AbortSignal): Promise<never> {
  await setTimeout(milliseconds, undefined, { signal, ref: false })
  throw new Error(`no answer within ${milliseconds} ms`)
}

/**
 * Asks about each block once, for one submission, which may bring many transactions of one block. Kept for longer, an
 * answer would hide a reorg.
 */
export class OnceAsked implements ChainTracker {
  private readonly answers = new Map<string, Promise<boolean>>()

  constructor(private readonly tracker: ChainTracker) {}

  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const key = `${height} ${root}`
    const answer = this.answers.get(key) ?? this.tracker.isValidRootForHeight(root, height)
    this.answers.set(key, answer)
    return await answer
  }

  async currentHeight(): Promise<number> {
    return await this.tracker.currentHeight()
  }
}

/** The chain tracker that the settings name; undefined where proofs are not checked. */
export function openHeadersSource(
  config: Pick<Config, 'chainTracker' | 'chainTrackerTimeout' | 'network'>,
): HeadersSource | undefined {
  const { chainTracker, chainTrackerTimeout: timeout, network } = config
  if (chainTracker === 'scripts-only') return undefined
  const dialect = chainTracker === 'whatsonchain' ? whatsOnChain(network) : headersService(chainTracker)
  return new HeadersSource({ name: withoutPassword(chainTracker), dialect, timeout })
}

/** Whoever submits is told which tracker did not answer. */
function withoutPassword(name: string): string {
  const url = URL.canParse(name) ? new URL(name) : undefined
  if (url === undefined || url.username + url.password === '') return name
  url.username = ''
  url.password = ''
  return url.href
}
