import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import {
  type Deed,
  type History,
  type HistoryTransaction,
  historyOf,
  type Shape,
} from '../../histories/history.js'
import { MinedChain } from '../../histories/mined-chain.js'
import type { Block, HeaderChain } from '../server/header-chain.js'

/** How blocks are mined; numbers choose. */
export interface Mining {
  /** How many blocks are taken back before. */
  reorg: number
  blocks: number
  /** With which chance a transaction that fits is mined. */
  share: number
  choice: number
}

/**
 * A chain that grows and forks over the transactions of a history, with the mempool of a node that follows it: what an honest
 * chain source knows. A transaction that nobody has mined or broadcast does not exist yet.
 */
export class ChainWorld {
  readonly history: History
  private readonly mined: MinedChain
  private readonly pool = new Set<string>()
  private readonly takenBack = new Set<string>()
  private readonly spenders = new Map<string, string>()
  private readonly order: ReadonlyMap<string, number>
  private readonly rivals: ReadonlyMap<string, readonly HistoryTransaction[]>

  constructor({ deeds, shape }: { deeds: readonly Deed[]; shape: Shape }) {
    this.history = historyOf(deeds, shape)
    this.mined = new MinedChain(this.history)
    const { transactions } = this.history
    this.order = new Map(transactions.map(({ txid }, at) => [txid, at]))
    this.rivals = rivalsAmong(transactions)
    this.refresh()
  }

  get headers(): HeaderChain {
    return this.mined.headers
  }

  /** The transactions of the mempool, parents first. */
  get mempool(): HistoryTransaction[] {
    return this.inOrder(this.pool)
  }

  isMined(txid: string): boolean {
    return this.mined.has(txid)
  }

  /** Whether a node knows it: it is mined, or in the mempool. */
  isKnown(txid: string): boolean {
    return this.isMined(txid) || this.pool.has(txid)
  }

  /** Whether it can be broadcast: its parents are known and its scripts run. Double spends of the mempool are asked for apart. */
  isValid({ txid, spends, needsProof }: HistoryTransaction): boolean {
    return !this.isKnown(txid) && !needsProof && spends.every((spent) => this.exists(spent.slice(0, 64)))
  }

  /** Those that spend a coin of this one, and are mined or in the mempool. */
  conflictsOf({ txid }: { txid: string }): HistoryTransaction[] {
    return this.rivalsOf(txid).filter((each) => this.isKnown(each.txid))
  }

  /** All of the history that spend a coin of this one. */
  rivalsOf(txid: string): readonly HistoryTransaction[] {
    return this.rivals.get(txid) ?? []
  }

  /** Puts a transaction into the mempool. False where a node would refuse it. */
  broadcast(transaction: HistoryTransaction): boolean {
    if (!this.isValid(transaction) || this.conflictsOf(transaction).length > 0) return false
    this.pool.add(transaction.txid)
    this.refresh()
    return true
  }

  /** Mines blocks: of what is in the mempool, and of what nobody has seen before. */
  mine(mining: Mining): { takenBack: number } {
    const before = new Set(this.history.transactions.filter(({ txid }) => this.isMined(txid)))
    const takenBack = this.mined.mine(mining)
    // What the chain took back is in the mempool again, if nothing of the new blocks conflicts.
    for (const { txid } of before) {
      if (this.isMined(txid)) continue
      this.pool.add(txid)
      this.takenBack.add(txid)
    }
    this.refresh()
    return { takenBack }
  }

  /**
   * Mines until nothing is in the mempool that anything conflicts with, or that a block held before: then everybody agrees on
   * what counts, and a host that knows an unproven transaction has learnt it with its ancestors. The last block leaves the rest of
   * the mempool unmined.
   *
   * @param again What clients broadcast once more before.
   */
  settle(choice: number, again: ReadonlySet<string>): void {
    for (const each of this.inOrder(again)) this.broadcast(each)

    const isOpen = ({ txid }: HistoryTransaction): boolean =>
      this.takenBack.has(txid) || this.rivalsOf(txid).length > 0
    for (let left = this.mempool.filter(isOpen); left.length > 0; left = this.mempool.filter(isOpen)) {
      const lines = left.flatMap((each) => this.unminedLine(each))
      this.mined.mine({ blocks: 1, share: 1, choice, among: this.inOrder(new Set(lines)) })
      this.refresh()
    }
    this.mined.mine({ blocks: 1, share: 0, choice })
  }

  /** A transaction as an honest source returns it; undefined where no node knows it. */
  record(txid: string): TransactionRecord | undefined {
    const transaction = this.history.byTxid.get(txid)
    if (transaction === undefined || !this.isKnown(txid)) return undefined
    const proof = this.mined.blockOf(txid)?.proof(txid)
    return { txid, raw: transaction.raw, ...(proof && { proof }) }
  }

  /** A block that held a transaction, and that the chain took back. */
  staleBlockOf(txid: string): Block | undefined {
    return this.mined.everMined({ isStale: true }).find((each) => each.transaction.txid === txid)?.block
  }

  spenderOf(outpoint: Outpoint | string): string | undefined {
    return this.spenders.get(typeof outpoint === 'string' ? outpoint : formatOutpoint(outpoint))
  }

  /** The unproven ancestors of a transaction, parents first, and what proves them: a BEEF of it needs no more. */
  ancestorsOf(transaction: HistoryTransaction): HistoryTransaction[] {
    const found = new Set<string>()
    const add = ({ spends }: HistoryTransaction): void => {
      for (const spent of spends) {
        const parent = this.history.byTxid.get(spent.slice(0, 64))
        if (parent === undefined || found.has(parent.txid)) continue
        found.add(parent.txid)
        if (!this.isMined(parent.txid)) add(parent)
      }
    }
    add(transaction)
    return this.inOrder(found)
  }

  inOrder(txids: ReadonlySet<string>): HistoryTransaction[] {
    return this.history.transactions.filter(({ txid }) => txids.has(txid))
  }

  /** A transaction after its unmined ancestors. */
  unminedLine(transaction: HistoryTransaction): string[] {
    const above = this.ancestorsOf(transaction).filter(({ txid }) => !this.isMined(txid))
    return [...above.map(({ txid }) => txid), transaction.txid]
  }

  /** A coin of which nobody has the transaction is in some block. */
  private exists(txid: string): boolean {
    return this.isKnown(txid) || !this.order.has(txid)
  }

  /** Drops from the mempool what blocks hold or conflict with, and what is built on that. */
  private refresh(): void {
    this.spenders.clear()
    const spend = ({ txid, spends }: HistoryTransaction): void => {
      for (const spent of spends) this.spenders.set(spent, txid)
    }
    for (const each of this.history.transactions) if (this.isMined(each.txid)) spend(each)
    const waiting = this.inOrder(this.pool)
    this.pool.clear()
    for (const each of waiting) {
      const fits = each.spends.every((spent) => this.exists(spent.slice(0, 64)) && !this.spenders.has(spent))
      if (this.isMined(each.txid) || !fits) continue
      this.pool.add(each.txid)
      spend(each)
    }
  }
}

/** By txid, all that spend a coin that it spends. */
function rivalsAmong(transactions: readonly HistoryTransaction[]): Map<string, HistoryTransaction[]> {
  const bySpent = new Map<string, HistoryTransaction[]>()
  for (const each of transactions)
    for (const spent of each.spends) bySpent.set(spent, [...(bySpent.get(spent) ?? []), each])
  return new Map(
    transactions.map(({ txid, spends }) => [
      txid,
      spends.flatMap((spent) => bySpent.get(spent) ?? []).filter((each) => each.txid !== txid),
    ]),
  )
}
