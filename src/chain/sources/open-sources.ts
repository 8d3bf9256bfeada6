import type { Logger } from 'pino'
import { ArcSource } from './arc.js'
import type { SingleSource } from './chain-source.js'
import { ChainSources, type ChainSourcesOptions } from './chain-sources.js'
import { JungleBusSource } from './junglebus.js'
import { OverlaySource } from './overlay-source.js'
import type { RateLimit } from './rate-limit.js'
import { rateOf, type SourceAddress, type SourceKind, sourceName } from './source-address.js'
import type { SourceClientOptions } from './source-client.js'
import { WhatsOnChainSource } from './whatsonchain.js'

export interface OpenSourcesOptions extends Pick<ChainSourcesOptions, 'verdict' | 'patience' | 'random'> {
  /** In order of preference; at least one. */
  addresses: readonly SourceAddress[]
  /** The most requests a second to each. */
  rate: number
  /** The limit of a source that something else asks as well, if it does. */
  limitOf?: (address: SourceAddress) => RateLimit | undefined
  /** The most requests in flight at once to each. */
  parallel?: number
  /** The timeout of one request, in milliseconds. */
  timeout?: number
  /** The first rest of a source that fails, in milliseconds. */
  firstRest?: number
  signal?: AbortSignal
  logger?: Pick<Logger, 'info' | 'warn'>
}

/** As many as the clients of JungleBus use (`DefaultMaxConcurrentRequests` of b-open-io/go-junglebus). */
const DEFAULT_PARALLEL = 8
/** How often a request is tried. After that, the next source is asked, or this one after a rest. */
const TRIES = { one: 3, several: 2 }

const CLIENTS: Readonly<Record<SourceKind, new (options: SourceClientOptions) => SingleSource>> = {
  junglebus: JungleBusSource,
  whatsonchain: WhatsOnChainSource,
  overlay: OverlaySource,
  arc: ArcSource,
}

/** Chain sources of a list, as one. Close it to close their connections. */
export function openSources(options: OpenSourcesOptions): ChainSources {
  const { addresses, rate, parallel = DEFAULT_PARALLEL, timeout, firstRest, signal, logger } = options
  const { limitOf } = options
  const sources = addresses.map(
    (address) =>
      new CLIENTS[address.kind]({
        ...{ url: address.url, name: sourceName(address), parallel, timeout, firstRest, signal, logger },
        ...{ rate: rateOf(address, rate), limit: limitOf?.(address) },
        tries: addresses.length === 1 ? TRIES.one : TRIES.several,
        // Meanwhile others are asked, and if there are none, all wait together.
        patience: 0,
      }),
  )
  return new ChainSources({ ...options, sources })
}
