import type { Logger } from 'pino'
import { type Block, blockText, type TransactionRecord } from '../../../backend/src/graph/records.js'
import { spendsOf } from '../../../backend/src/graph/transaction-records.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { Verdict } from '../headers/header-chain.js'
import type { ChainTip } from '../sources/chain-source.js'
import type { HeadersStatus } from '../sources/status.js'

/** Decides about blocks: our own chain of headers, or the chain tracker of another host. */
export interface BlockHeaders {
  /** Why proofs cannot be checked for now; undefined if they can. */
  readonly outage: string | undefined
  /**
   * Whether the chain has a block. `no` only if the known chain is that long: one that lags behind cannot know.
   *
   * @throws ChainTrackerError if there is no answer for now.
   */
  verdict(block: Block): Promise<Verdict>
  /** @throws ChainTrackerError if there is no answer for now. */
  isValidRootForHeight(root: string, height: number): Promise<boolean>
  /** @throws ChainTrackerError if there is no answer for now. */
  currentHeight(): Promise<number>
  status(): HeadersStatus
  /** Asks now whether there is a new tip; missing if every call asks anyway. */
  refresh?(): Promise<void>
  /** Resolves once headers are known up to the tip, or the sources bring no more of them; missing if none are fetched. */
  fetched?(): Promise<void>
  /** Calls the listener with each new tip, and at once with the last one that others were called with. */
  onTip(listener: (tip: ChainTip) => void): void
  close(): Promise<void>
}

/** Checks stored proofs against the current chain. Without a source of headers, proofs are trusted. */
export class ProofVerifier {
  constructor(
    private readonly options: {
      headers: BlockHeaders | undefined
      graph: Pick<FactStore, 'disprove' | 'blocks' | 'transactions'>
      logger: Logger
    },
  ) {}

  get headers(): BlockHeaders | undefined {
    return this.options.headers
  }

  /** @throws ChainTrackerError if the tracker does not answer. */
  async verdict(block: Block): Promise<Verdict> {
    return (await this.headers?.verdict(block)) ?? 'yes'
  }

  /**
   * Removes the proofs that lead to a block that the tracker refused.
   *
   * @returns How many transactions lost their proof.
   */
  async disprove(block: Block): Promise<number> {
    const { graph, logger } = this.options
    const transactions = await graph.disprove(block)
    if (transactions > 0)
      logger.warn(
        { ...block, transactions },
        'the chain has another block at that height: removed the proofs that lead to it',
      )
    return transactions
  }

  /**
   * Checks with the tracker, and removes, proofs that contradict proven transactions which are about to be recorded: proofs of the
   * same transaction in another block, and proofs of conflicting transactions, as an outdated proof must not win by its height. A
   * descendant may still give such a transaction a height without its own proof, so the descendant's block is checked as well.
   *
   * @throws ChainTrackerError if the tracker does not answer.
   */
  async disproveRuledOut(transactions: readonly TransactionRecord[]): Promise<void> {
    if (this.headers === undefined) return
    const { graph } = this.options
    const spends = spendsOf(transactions)
    for (const { txid, proof } of transactions) {
      if (proof === undefined || graph.transactions.heightOf(txid) === undefined) continue
      const stored = graph.transactions.raw(txid)?.proof
      if (stored === undefined || blockText(stored) === blockText(proof)) continue
      if ((await this.verdict(stored)) === 'no') await this.disprove(stored)
    }
    const asked = new Set<string>()
    for (let isChanged = true; isChanged; ) {
      isChanged = false
      for (const block of await graph.blocks.ofConflicts(spends)) {
        if (asked.has(blockText(block))) continue
        asked.add(blockText(block))
        if ((await this.verdict(block)) !== 'no') continue
        await this.disprove(block)
        isChanged = true
      }
    }
  }
}
