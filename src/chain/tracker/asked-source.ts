import { HEADER_BYTES, rootOf } from '../../../backend/src/protocol/block-header.js'
import { HeaderSource } from '../sources/header-source.js'
import type { HeaderSourceKind, SourceAddress } from '../sources/source-address.js'
import type { AskedTracker } from './given-headers.js'

/** The most requests a second: as many as there are proofs. */
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
    async isValidRootForHeight(root, height) {
      const header = await source.headers({ from: height, count: 1, tip: height })
      return typeof header !== 'string' && header.length >= HEADER_BYTES && rootOf(header) === root
    },
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
