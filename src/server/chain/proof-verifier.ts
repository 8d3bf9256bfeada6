import type { Logger } from 'pino'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { Block, SpendRecord } from '../../../backend/src/graph/records.js'
import type { SubmissionTracker } from '../submission/verify-submission.js'
import { type HeadersSource, OnceAsked, type Verdict } from './chain-tracker.js'

/** Holds kept proofs against the chain as it is now. Without a source of headers, what is kept is believed. */
export class ProofVerifier {
  readonly headers: HeadersSource | undefined
  private readonly graph: Pick<GraphStore, 'disprove' | 'blocks'>
  private readonly logger: Logger

  constructor(options: {
    headers: HeadersSource | undefined
    graph: Pick<GraphStore, 'disprove' | 'blocks'>
    logger: Logger
  }) {
    this.headers = options.headers
    this.graph = options.graph
    this.logger = options.logger
  }

  /**
   * A tracker for one submission, which is asked about each block once, and about no more than the limits allow; undefined
   * where nobody is asked.
   */
  openTracker(): SubmissionTracker | undefined {
    return this.headers?.forSubmission()
  }

  /** The same for what a peer of the operator's choice brings together, which has limits of its own. */
  openSyncTracker(): SubmissionTracker | undefined {
    return this.headers && new OnceAsked(this.headers)
  }

  /** @throws ChainTrackerError where the tracker does not answer. */
  async verdict(block: Block): Promise<Verdict> {
    return (await this.headers?.verdict(block)) ?? 'yes'
  }

  /**
   * Takes back the proofs that lead to a block which the tracker refuses. Whoever calls has had the turn of the engine
   * since it was asked, so that none of these proofs came again meanwhile.
   *
   * @returns How many transactions lost their proof.
   */
  async takeBack(block: Block): Promise<number> {
    const transactions = await this.graph.disprove(block)
    if (transactions > 0)
      this.logger.warn({ ...block, transactions }, 'a block was reorganised away: its proofs are dropped')
    return transactions
  }

  /**
   * The same for the blocks of rivals of what is about to be kept as proven, where the tracker refuses them: a chain has
   * one of the two, so that the proof of the other is out of date, and must not decide by its height. Without it, what is
   * built on the rival may give it another: that is asked about as well.
   *
   * @throws ChainTrackerError where the tracker does not answer.
   */
  async disproveConflicts(spends: SpendRecord[]): Promise<void> {
    if (this.headers === undefined) return
    const asked = new Set<string>()
    for (let goesOn = true; goesOn; ) {
      goesOn = false
      for (const block of await this.graph.blocks.ofConflicts(spends)) {
        const key = `${block.height} ${block.root}`
        if (asked.has(key)) continue
        asked.add(key)
        if ((await this.verdict(block)) !== 'no') continue
        await this.takeBack(block)
        goesOn = true
      }
    }
  }
}
