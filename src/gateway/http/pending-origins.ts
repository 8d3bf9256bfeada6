import type { AncestorQueue } from '../../../backend/src/graph/ancestor-queue.js'
import { type OrdinalStep, TIP } from '../../../backend/src/graph/records.js'
import { storedOutput } from '../../../backend/src/graph/stored-transaction.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { originPending } from './errors.js'

/** The state of transactions that are being fetched to place ordinals. */
export type MissingAncestors = Pick<AncestorQueue, 'isWaiting' | 'isUnplaced'>

/**
 * Whether something about an ordinal is unknown while the host fetches it. All routes that depend on its origin, later steps or
 * tip ask this (`docs/spec/overlay.md`, Missing ancestors).
 */
export class PendingOrigins {
  /** @param store Including blocked outputs, which are refused elsewhere. */
  constructor(
    private readonly store: GraphReads,
    private readonly ancestors: MissingAncestors,
  ) {}

  /** Whether something that is missing about the ordinal in an output may be found later. */
  async isPending(outpoint: Outpoint): Promise<boolean> {
    const { ancestors, store } = this
    if (await ancestors.isWaiting(outpoint)) return true
    if (store.ordinals.output(outpoint) === undefined) return this.mayReceive(outpoint)
    return this.isMoving(store.ordinals.at(outpoint, TIP))
  }

  /** @throws AnswerError for a tip while it is unknown where the ordinal went. */
  checkTip(tip: OrdinalStep | undefined): void {
    if (this.isMoving(tip)) throw originPending()
  }

  /** Whether a stored transaction that is not placed yet may move an ordinal into an output. */
  private mayReceive(outpoint: Outpoint): boolean {
    if (!this.ancestors.isUnplaced(outpoint.txid)) return false
    return storedOutput(outpoint, this.store.transactions)?.satoshis === 1
  }

  /**
   * Whether a mined transaction spends the last known output of an ordinal and is not placed yet. An unmined one does not count,
   * as it may never be mined.
   */
  private isMoving(tip: OrdinalStep | undefined): boolean {
    const { transactions } = this.store
    const spender = tip && transactions.spenderOf(tip.output.outpoint)
    if (spender === undefined || transactions.heightOf(spender) === undefined) return false
    return this.ancestors.isUnplaced(spender)
  }
}
