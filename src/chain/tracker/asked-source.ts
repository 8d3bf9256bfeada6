import { showsRoot } from '../headers/header-chain.js'
import { HeaderSource } from '../sources/header-source.js'
import type { HeaderSourceKind, SourceAddress } from '../sources/source-address.js'
import type { AskedTracker } from './given-headers.js'

/** The most requests a second: every proof takes one. */
const RATE = 1000

/** A chain tracker that asks a source of headers for the header of each block, and believes it. */
export function askedSource(options: {
  address: SourceAddress<HeaderSourceKind>
  timeout: number
  network: 'main' | 'test'
}): Required<AskedTracker> {
  const stopping = new AbortController()
  let onTip = (): void => {}
  const source = new HeaderSource({
    ...{ ...options, rate: RATE, signal: stopping.signal, onTip: () => onTip() },
    // There is no other one to ask, and each question is for one header.
    ...{ firstRest: 0, longestRest: 0, pageTimes: 1 },
  })
  return {
    isValidRootForHeight: (root, height) => showsRoot(source, { root, height }),
    currentHeight: async () => (await source.tip()).height,
    tip: () => source.tip(),
    watch(listener) {
      onTip = listener
      source.watch()
    },
    async close() {
      stopping.abort()
      await source.close()
    },
  }
}
