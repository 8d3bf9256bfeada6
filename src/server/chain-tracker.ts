import { setTimeout } from 'node:timers/promises'
import { BlockHeadersService, type ChainTracker, WhatsOnChain } from '@bsv/sdk'
import type { Config } from './config.js'
import { ChainTrackerError } from './overlay-errors.js'

/** Says of every failure of a chain tracker that it is the tracker's, and not the transaction's. */
class NamedChainTracker implements ChainTracker {
  constructor(
    private readonly tracker: ChainTracker,
    private readonly name: string,
    /** How long an answer may take, in milliseconds; other submissions wait meanwhile. */
    private readonly timeout: number,
  ) {}

  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return await this.ask(() => this.tracker.isValidRootForHeight(root, height))
  }

  async currentHeight(): Promise<number> {
    return await this.ask(() => this.tracker.currentHeight())
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

/** The chain tracker that the settings name; `'scripts only'` is the engine's word for none. */
export function openChainTracker({
  chainTracker,
  chainTrackerTimeout,
  network,
}: Config): ChainTracker | 'scripts only' {
  if (chainTracker === 'scripts-only') return 'scripts only'
  const tracker =
    chainTracker === 'whatsonchain' ? new WhatsOnChain(network) : new BlockHeadersService(chainTracker)
  return new NamedChainTracker(tracker, chainTracker, chainTrackerTimeout)
}
