import type { Outpoint } from '../protocol/outpoint.js'
import { ancestry, parentsOf } from './ancestry.js'
import type { TransactionSource } from './graph-store.js'
import type { ListedTransaction } from './listed-beef.js'
import { inParentsFirst } from './parents-first.js'
import { readOutline, type TransactionOutline } from './transaction-outline.js'
import { yieldToEventLoop } from './yield-to-event-loop.js'

interface Collected {
  listed: ListedTransaction
  /** What it spends of, whether that is collected or not. */
  parents: string[]
}

/**
 * Transactions that show something together, each once. They are read one at a time: kept of each are its txid, length
 * and proof, and the txids of what it spends.
 */
export class Collection {
  private readonly collected = new Map<string, Collected>()
  private readonly seen = new Set<string>()

  /** Of the transactions with their merkle paths: about what a BEEF of them has. */
  bytes = 0

  constructor(private readonly store: TransactionSource) {}

  has(txid: string): boolean {
    return this.collected.has(txid)
  }

  /**
   * Adds a transaction and, where it is not proven, its ancestors down to proven ones, as far as the store holds them.
   *
   * @param more Asked of each, by what it spends: a transaction that it rests on beside those. This one is walked to first.
   */
  async addAncestry(
    txid: string,
    more?: (transaction: { txid: string; inputs: Outpoint[] }) => Promise<string | undefined>,
  ): Promise<void> {
    const { store, seen } = this
    const walk = ancestry({
      txid,
      read: (each) => readOutline(each, store),
      seen,
      visit: async (outline) => {
        const { txid, inputs } = outline
        const parents = parentsOf({ inputs })
        const first = await more?.({ txid, inputs })
        return {
          item: { listed: listed(outline), parents },
          before: [...(outline.proof === undefined ? parents : []), ...(first === undefined ? [] : [first])],
        }
      },
    })
    for await (const each of walk) this.keep(each)
  }

  /** Adds a transaction that was looked at and, where it is not proven, its ancestors as {@link addAncestry} has them. */
  async addOutlined(outline: TransactionOutline): Promise<void> {
    const parents = parentsOf(outline)
    if (outline.proof === undefined) for (const parent of parents) await this.addAncestry(parent)
    this.seen.add(outline.txid)
    this.keep({ listed: listed(outline), parents })
  }

  private keep(collected: Collected): void {
    const { txid, length, proof } = collected.listed
    this.bytes += length + (proof?.merklePath.length ?? 0)
    this.collected.set(txid, collected)
  }

  /**
   * All of them, parents before children (BRC-62); else in the order in which they were added. So one of which all
   * others are ancestors stands last. Others are served meanwhile, however many there are.
   */
  async parentsFirst(): Promise<ListedTransaction[]> {
    const ordered: ListedTransaction[] = []
    for (const { listed } of inParentsFirst(this.collected, ({ parents }) => parents)) {
      ordered.push(listed)
      if (ordered.length % ORDERED_A_SLICE === 0) await yieldToEventLoop()
    }
    return ordered
  }
}

const ORDERED_A_SLICE = 1000

function listed({ txid, length, proof }: TransactionOutline): ListedTransaction {
  return { txid, length, ...(proof && { proof }) }
}
