import type { Logger } from 'pino'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import { knownTransactions } from '../../../backend/src/graph/transaction-records.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { type ChainPosition, isOver, positionAt } from '../../../backend/src/protocol/block-rules.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { BackgroundJob } from '../../chain/sources/background.js'
import type { BlockHeaders } from '../../chain/tracker/chain-tracker.js'
import type { Writes } from '../store/index-status.js'
import { SubmissionError } from './errors.js'

/** The most held submissions, the longest in bytes, and how many are released at once. */
const MAX_HELD = 1000
const MAX_HELD_BYTES = 256 * 1024
const RELEASE_BATCH = 20
/** The pause between two polls, in milliseconds: blocks come every ten minutes. */
const POLL_INTERVAL = 30_000

/** Submissions whose lock time has not been reached: held until a block can include them, then submitted again. */
export class NonFinalSubmissions {
  constructor(
    private readonly options: {
      /** Where they are held; without it, non-final submissions are refused. */
      store: FactStore['held'] | undefined
      graph: Pick<FactStore, 'blocks'>
      headers: Pick<BlockHeaders, 'currentHeight'> | undefined
      writes: Writes
    },
  ) {}

  /** Whether the next block can include a transaction locked until a position. */
  async isOver(lock: ChainPosition): Promise<boolean> {
    return isOver(lock, await this.position())
  }

  /** @throws SubmissionError if the submission is too long to be held. */
  async hold(contents: BeefContents, lock: ChainPosition): Promise<void> {
    const { store, writes } = this.options
    const { txid } = contents.subject
    const known = new Map(knownTransactions(contents).map((each) => [each.txid, each]))
    // In the order of the submitted BEEF, parents first: finding common ancestors of two transactions may take long.
    const beef = encodeBeef(contents.txids.flatMap((each) => known.get(each) ?? []))
    if (store === undefined || beef.length > MAX_HELD_BYTES)
      throw new SubmissionError(
        'BAD_BODY',
        `${txid} is not final yet: submit it once its lock time is reached`,
      )
    await writes.run(() => store.hold({ txid, lock, beef }, { maxCount: MAX_HELD }))
  }

  /** Submits some held transactions that have become final. Returns how many. */
  async release(submit: (beef: Uint8Array) => Promise<unknown>): Promise<number> {
    const { store } = this.options
    if (store === undefined) return 0
    let released = 0
    for (const { txid, beef } of await store.heldUntil(await this.position(), RELEASE_BATCH)) {
      try {
        await submit(beef)
      } catch (error) {
        // A failure of the chain tracker is retried; a submission that has lost a conflict is not.
        if (!(error instanceof SubmissionError)) throw error
      }
      await store.release(txid)
      released++
    }
    return released
  }

  /**
   * The position of the chain; without block headers, according to stored proofs. Its time is behind the clock, as a
   * block's time is the median of those before it.
   */
  private async position(): Promise<ChainPosition> {
    const { headers, graph } = this.options
    return positionAt((await headers?.currentHeight()) ?? graph.blocks.lastHeight())
  }
}

/** Submits held transactions again as they become final. */
export function nonFinalJob({
  release,
  logger,
}: {
  release: () => Promise<number>
  logger: Logger
}): BackgroundJob {
  return new BackgroundJob(async () => {
    try {
      const released = await release()
      if (released === 0) return POLL_INTERVAL
      logger.info({ released }, 'processed submissions that have become final')
      return 0
    } catch (err) {
      const level = err instanceof ChainTrackerError ? 'warn' : 'error'
      logger[level]({ err }, 'failed to process submissions that have become final; will retry')
      return POLL_INTERVAL
    }
  })
}
