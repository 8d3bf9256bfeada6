import type { Logger } from 'pino'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { Block, SpendRecord } from '../../../backend/src/graph/records.js'
import type { HeadersSource, Verdict } from './chain-tracker.js'

/** Checks stored proofs against the chain as it is now. Without a source of headers, they are believed. */
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

  /** @throws ChainTrackerError if the tracker does not answer. */
  async verdict(block: Block): Promise<Verdict> {
    return (await this.headers?.verdict(block)) ?? 'yes'
  }

  /**
   * Removes the proofs that lead to a block which the tracker refused. The caller has held the write lock since it asked, so
   * that none of these proofs came again meanwhile.
   *
   * @returns How many transactions lost their proof.
   */
  async disprove(block: Block): Promise<number> {
    const transactions = await this.graph.disprove(block)
    if (transactions > 0)
      this.logger.warn(
        { ...block, transactions },
        'the chain has another block at that height: removed the proofs that lead to it',
      )
    return transactions
  }

  /**
   * Does so for the blocks of transactions in conflict with proven ones that are about to be recorded: a chain has one of the
   * two, so the proof of the other is out of date, and must not win by its height. Without that proof, a descendant may
   * still give it a height: its block is asked about as well.
   *
   * @throws ChainTrackerError if the tracker does not answer.
   */
  async disproveConflicts(spends: SpendRecord[]): Promise<void> {
    if (this.headers === undefined) return
    const asked = new Set<string>()
    for (let isChanged = true; isChanged; ) {
      isChanged = false
      for (const block of await this.graph.blocks.ofConflicts(spends)) {
        const key = `${block.height} ${block.root}`
        if (asked.has(key)) continue
        asked.add(key)
        if ((await this.verdict(block)) !== 'no') continue
        await this.disprove(block)
        isChanged = true
      }
    }
  }
}
