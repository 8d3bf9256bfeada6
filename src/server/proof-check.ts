import type { Block } from '../../backend/src/graph/records.js'
import type { HeadersSource, Verdict } from './chain-tracker.js'

/** Holds proofs against the chain as it is now. Without a source of headers, they are believed. */
export class ProofCheck {
  constructor(readonly headers: HeadersSource | undefined) {}

  /** @throws ChainTrackerError where the tracker does not answer. */
  async verdict(block: Block): Promise<Verdict> {
    return (await this.headers?.verdict(block)) ?? 'yes'
  }
}
