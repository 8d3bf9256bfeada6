import type { Logger } from 'pino'
import { ArcSource } from './arc.js'
import type { SingleSource } from './chain-source.js'
import { ChainSources, type ChainSourcesOptions } from './chain-sources.js'
import { JungleBusSource } from './junglebus.js'
import { OverlaySource } from './overlay-source.js'
import { rateOf, type SourceAddress, type SourceKind, sourceName } from './source-address.js'
import type { SourceClientOptions } from './source-client.js'
import { WhatsOnChainSource } from './whatsonchain.js'

export interface OpenSourcesOptions extends Pick<ChainSourcesOptions, 'verdict' | 'patience' | 'random'> {
  /** In order of preference; at least one. */
  addresses: readonly SourceAddress[]
  /** The most requests a second to each source. */
  rate: number
  /** The timeout of one request, in milliseconds. */
  timeout?: number
  /** The first rest of a source that fails, in milliseconds. */
  firstRest?: number
  signal?: AbortSignal
  logger?: Pick<Logger, 'info' | 'warn'>
}

const CLIENTS: Readonly<Record<SourceKind, new (options: SourceClientOptions) => SingleSource>> = {
  junglebus: JungleBusSource,
  whatsonchain: WhatsOnChainSource,
  overlay: OverlaySource,
  arc: ArcSource,
}

/** The chain sources of a list, as one. Close it to close their connections. */
export function openSources(options: OpenSourcesOptions): ChainSources {
  const { addresses, rate, timeout, firstRest, signal, logger } = options
  const sources = addresses.map(
    (address) =>
      new CLIENTS[address.kind]({
        ...{ url: address.url, name: sourceName(address), timeout, firstRest, signal, logger },
        rate: rateOf(address, rate),
      }),
  )
  return new ChainSources({ ...options, sources })
}
