import type { Logger } from 'pino'
import type { BackgroundJob } from './background.js'
import { chaintracksStream } from './chaintracks-stream.js'
import { type HeaderFetcher, openFetcher, PAGE_TIMES } from './header-fetcher.js'
import {
  type HeaderSourceKind,
  rateOf,
  type SourceAddress,
  sourceName,
  whatsOnChainUrl,
} from './source-address.js'
import { SourceClient } from './source-client.js'

/** The longest rest of a source that does not answer, in milliseconds: the host may be waiting for it. */
const LONGEST_REST = 60_000

/** A source of block headers. It rests if it fails, or if its headers are invalid. */
export class HeaderSource implements HeaderFetcher {
  readonly client: SourceClient
  readonly tip: HeaderFetcher['tip']
  readonly headers: HeaderFetcher['headers']
  private readonly stream: BackgroundJob | undefined

  constructor(options: {
    address: SourceAddress<HeaderSourceKind>
    /** The most requests a second: a round takes one or two, unless many headers are missing. */
    rate: number
    /**
     * The timeout of a request for a tip, in milliseconds. A request for headers may take {@link PAGE_TIMES} as long.
     */
    timeout: number
    network: 'main' | 'test'
    signal: AbortSignal
    logger?: Logger
    now?: (() => number) | undefined
    /** Called when its stream announces a new tip; without it, no stream is opened. */
    onTip?: () => void
  }) {
    const { address, rate, timeout, network, signal, logger, now, onTip } = options
    const { kind, url } = address
    this.client = new SourceClient({
      ...{ name: sourceName(address), rate: rateOf(address, rate) },
      url: kind === 'whatsonchain' ? whatsOnChainUrl(url, network) : url,
      ...{ timeout, signal, ...(logger && { logger }), ...(now && { now }) },
      longestRest: LONGEST_REST,
    })
    const { tip, headers } = openFetcher(kind, this.client, { pageTimeout: PAGE_TIMES * timeout })
    this.tip = tip
    this.headers = headers
    if (kind === 'chaintracks' && onTip !== undefined) this.stream = chaintracksStream({ url, onTip })
  }

  get name(): string {
    return this.client.name
  }

  get isResting(): boolean {
    return this.client.rest > 0
  }

  /** Listens to the event stream of the source, if it has one. */
  watch(): void {
    this.stream?.start()
  }

  async close(): Promise<void> {
    this.client.close()
    await this.stream?.stop()
  }
}
