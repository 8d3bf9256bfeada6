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
import { answeredWithin } from '../../../backend/src/graph/answered-within.js'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import type { Block } from '../../../backend/src/graph/records.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { boundedHttpClient } from '../../client/bounded-fetch.js'
import type { Verdict } from '../headers/header-chain.js'
import type { ChainTip } from '../sources/chain-source.js'
import { ChaintracksStreams } from '../sources/chaintracks-streams.js'
import type { LastError } from '../sources/errors.js'
import { type BlockHeaders, type HeadersStatus, trackerName } from './chain-tracker.js'

/** How a service is asked, and what its answers mean. The SDK takes anything but a yes for a no, even a greeting. */
interface Dialect {
  open(http: HttpClient): ChainTracker
  /** What a response says of a block; missing where the client's own answer counts. @throws if it is about something else. */
  verdict?(response: HttpClientResponse<unknown>, asked: Block): Verdict
  /** The hash of the tip, if the response says it. @throws if it has no height. */
  tipHash(data: unknown): string | undefined
}

const height = z.int().nonnegative()

const hash = z.string().regex(/^[0-9a-f]{64}$/i)
/** Not needed, so one in another form is no reason to refuse the height. */
const tipHash = hash.toLowerCase().optional().catch(undefined)

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
    tipHash: (data) =>
      z.object({ height, header: z.object({ hash: tipHash }).catch({}) }).parse(data).header.hash,
  }
}

function whatsOnChain(network: 'main' | 'test'): Dialect {
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
    tipHash: (data) => z.tuple([z.object({ height, hash: tipHash })], z.unknown()).parse(data)[0].hash,
  }
}

const success = { status: z.literal('success') }

/** A Chaintracks server, version 2 of its routes (bsv-blockchain/go-chaintracks, `chaintracks-server` of ts-stack). */
function chaintracks(url: string): Dialect {
  const header = z.object({ ...success, value: z.object({ height, merkleRoot: hash }).nullish() })
  const tip = z.object({ ...success, value: z.object({ height, hash: tipHash }) })
  const get = async (http: HttpClient, path: string) => {
    const { ok, status, data } = await http.request(url + path, { method: 'GET' })
    if (!ok && status !== 404) throw new Error(`${path} answered ${status}`)
    return data
  }
  return {
    open: (http) => ({
      // Its result is ignored: see `askVerdict`.
      async isValidRootForHeight(_, height) {
        await get(http, `/v2/header/height/${height}`)
        return true
      },
      currentHeight: async () => tip.parse(await get(http, '/v2/tip')).value.height,
    }),
    verdict({ status, data }, asked) {
      if (status === 404) return 'unknown'
      const { value } = header.parse(data)
      if (value === undefined || value === null) return 'unknown'
      if (value.height !== asked.height)
        throw new Error(`asked about the block at ${asked.height}, it describes another one`)
      return value.merkleRoot.toLowerCase() === asked.root ? 'yes' : 'no'
    },
    tipHash: (data) => tip.parse(data).value.hash,
  }
}

/** The tracker of another host, which says no of what it does not know, too. */
function given(tracker: GivenTracker, timeout: number): Dialect {
  const error = (): Error => new Error(`it did not answer within ${timeout} ms`)
  return {
    open: () => ({
      isValidRootForHeight: (root, height) =>
        answeredWithin(timeout, () => tracker.isValidRootForHeight(root, height), { error }),
      currentHeight: () => answeredWithin(timeout, () => tracker.currentHeight(), { error }),
    }),
    tipHash: () => undefined,
  }
}

/** How long after a failure the tracker is probed, and for how long an answer is recent, in milliseconds. */
const PROBE_INTERVAL = 5000

/** The longest response that is read, in bytes: the longest that is requested, ten headers, has some 5 KB. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** What goes before the URL of a Chaintracks server in `CHAIN_TRACKER`: a bare URL is a Block Headers Service. */
const CHAINTRACKS = 'chaintracks='

function chaintracksUrl(chainTracker: string): string | undefined {
  if (!chainTracker.startsWith(CHAINTRACKS)) return undefined
  return chainTracker.slice(CHAINTRACKS.length).replace(/\/+$/, '')
}

/** A chain tracker of any copy of the SDK. */
export interface GivenTracker {
  isValidRootForHeight(root: string, height: number): Promise<boolean>
  currentHeight(): Promise<number>
}

export interface HeadersSettings {
  chainTracker: string | GivenTracker
  chainTrackerTimeoutMs: number
  network: 'main' | 'test'
  limits?: { maxTrackerRequests: number }
}

/** How many requests are in progress at once. */
const REQUESTS = 8

/**
 * A chain tracker whose failures are its own errors, not those of the transaction. It limits how many requests are in
 * progress at once; the others wait, first come first served.
 */
export class HeadersSource implements ChainTracker, BlockHeaders {
  private readonly name: string
  private readonly dialect: Dialect
  private readonly queue: LimitFunction
  private readonly listeners: ((tip: ChainTip) => void)[] = []
  private readonly streams: ChaintracksStreams | undefined
  private downSince: Date | undefined
  private lastError: LastError | undefined
  private tip: number | undefined
  /** When the last answer came, or failed to. */
  private askedAt = Number.NEGATIVE_INFINITY
  private isProbing = false
  private probing: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(private readonly settings: HeadersSettings) {
    const { chainTracker, chainTrackerTimeoutMs, network, limits } = settings
    const isGiven = typeof chainTracker === 'object'
    const server = isGiven ? undefined : chaintracksUrl(chainTracker)
    this.name = isGiven ? 'of the host' : trackerName(chainTracker)
    if (isGiven) this.dialect = given(chainTracker, chainTrackerTimeoutMs)
    else if (server !== undefined) {
      this.dialect = chaintracks(server)
      this.streams = new ChaintracksStreams({ url: server, onTip: (tip) => this.found(tip) })
    } else
      this.dialect = chainTracker === 'whatsonchain' ? whatsOnChain(network) : headersService(chainTracker)
    this.queue = pLimit(limits?.maxTrackerRequests ?? REQUESTS)
  }

  /**
   * Why proofs cannot be checked: the last request failed. Undefined if it succeeded. If that was not recently, the tracker is
   * probed for the next time, as nobody may submit anything meanwhile.
   */
  get outage(): string | undefined {
    if (monotonic() - this.askedAt > PROBE_INTERVAL) this.probe()
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

  status(): HeadersStatus {
    const { tip: height, lastError } = this
    return { ...(height !== undefined && { height }), ...(lastError && { lastError }) }
  }

  /** A service without streams shows a new tip when it is asked for the height. */
  onTip(listener: (tip: ChainTip) => void): void {
    this.listeners.push(listener)
    if (!this.isClosed) this.streams?.start()
  }

  async close(): Promise<void> {
    this.isClosed = true
    clearTimeout(this.probing)
    await this.streams?.close()
  }

  private found(tip: ChainTip): void {
    const isNew = tip.height !== this.tip || tip.forkedAt !== undefined
    this.tip = tip.height
    if (isNew && !this.isClosed) for (const listener of this.listeners) listener(tip)
  }

  private async askTip(): Promise<number> {
    let hash: string | undefined
    const tracker = this.open(({ data }) => {
      hash = this.dialect.tipHash(data)
    })
    const height = await this.ask(() => tracker.currentHeight())
    this.found({ height, ...(hash !== undefined && { hash }) })
    return height
  }

  private async askVerdict(block: Block): Promise<Verdict> {
    const answers: Verdict[] = []
    const { dialect } = this
    const tracker = this.open((response) => {
      if (dialect.verdict !== undefined) answers.push(dialect.verdict(response, block))
    })
    const isValid = await this.queue(() =>
      this.ask(() => tracker.isValidRootForHeight(block.root, block.height)),
    )
    if (dialect.verdict === undefined) return isValid ? 'yes' : 'no'
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
      this.askedAt = monotonic()
      return answer
    } catch (cause) {
      this.askedAt = monotonic()
      this.downSince ??= new Date()
      this.lastError = { at: Date.now(), message: messageOf(cause) }
      this.probeLater()
      throw new ChainTrackerError(`the chain tracker ${this.name} did not respond`, { cause })
    }
  }

  /** Without submissions, nothing else would notice that it is back. */
  private probeLater(): void {
    if (this.isClosed) return
    clearTimeout(this.probing)
    this.probing = setTimer(() => {
      if (this.downSince !== undefined) this.probe()
    }, PROBE_INTERVAL).unref()
  }

  private probe(): void {
    if (this.isClosed || this.isProbing) return
    this.isProbing = true
    this.currentHeight()
      .catch(() => {})
      .finally(() => {
        this.isProbing = false
      })
  }
}

/**
 * The service in the settings that a command without a store asks; undefined if proofs are not checked. A chain of our own
 * (`headers`) takes a store, so WhatsOnChain is asked instead.
 */
export function openHeadersSource(settings: HeadersSettings): HeadersSource | undefined {
  const { chainTracker } = settings
  if (chainTracker === 'scripts-only') return undefined
  return new HeadersSource(
    chainTracker === 'headers' ? { ...settings, chainTracker: 'whatsonchain' } : settings,
  )
}
