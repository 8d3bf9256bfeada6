import type { HeaderChain } from '../../../backend/src/graph/header-chain.js'
import type { Block } from '../../../backend/src/graph/records.js'
import type { HeaderCheckpoint } from '../config/header-settings.js'
import { type BlockHeaders, ChainTrackerError, type HeadersStatus, type Verdict } from './chain-tracker.js'
import { StoredHeaders } from './stored-headers.js'

/** The chain of headers that another thread of this process keeps ({@link OwnHeaders}): it is read, and nobody is asked. */
export class SharedHeaders implements BlockHeaders {
  /** What is wrong with the sources, the other thread says. */
  readonly outage = undefined
  private readonly stored: StoredHeaders

  constructor(options: { store: HeaderChain; checkpoint: HeaderCheckpoint; network: 'main' | 'test' }) {
    this.stored = new StoredHeaders({ ...options, isReader: true })
  }

  async verdict(block: Block): Promise<Verdict> {
    await this.stored.load()
    return await this.stored.verdict(block)
  }

  /** @throws ChainTrackerError if the header at that height is not known yet. */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const verdict = await this.verdict({ root, height })
    if (verdict === 'unknown') throw new ChainTrackerError(`the block header at ${height} is not known yet`)
    return verdict === 'yes'
  }

  async currentHeight(): Promise<number> {
    await this.stored.load()
    const { tip, hasEnoughWork } = this.stored
    if (tip === undefined || !hasEnoughWork) throw new ChainTrackerError('block headers are being fetched')
    return tip.height
  }

  status(): HeadersStatus {
    return {}
  }

  /** Never called: the other thread reports new tips. */
  onTip(): void {}

  async close(): Promise<void> {}
}
