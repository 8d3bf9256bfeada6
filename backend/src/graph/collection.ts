import type { Outpoint } from '../protocol/outpoint.js'
import { readTransaction } from '../protocol/transaction.js'
import { ancestry, parentsOf } from './ancestry.js'
import type { TransactionReader } from './graph-store.js'
import { type ListedTransaction, listed } from './listed-beef.js'
import { parentsFirst } from './parents-first.js'

/** What of a stored transaction is looked at, without its scripts. */
export interface Outline {
  listed: ListedTransaction
  inputs: Outpoint[]
  outputValues: number[]
}

/** A stored transaction, looked at; undefined where the store does not hold it. */
export async function readOutline(txid: string, store: TransactionReader): Promise<Outline | undefined> {
  const record = await store.transaction(txid)
  if (record === undefined) return undefined
  const { inputs, outputs } = readTransaction(record.raw, { txid })
  return {
    listed: listed(record),
    inputs: inputs.map((input) => ({ txid: input.txid, vout: input.vout })),
    outputValues: outputs.map(({ satoshis }) => satoshis),
  }
}

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

  constructor(private readonly store: TransactionReader) {}

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
      store,
      seen,
      visit: async (record) => {
        const { txid, inputs } = readTransaction(record.raw, { txid: record.txid })
        const parents = parentsOf({ inputs })
        const first = await more?.({ txid, inputs })
        return {
          item: { listed: listed(record), parents },
          before: [...(record.proof === undefined ? parents : []), ...(first === undefined ? [] : [first])],
        }
      },
    })
    for await (const each of walk) this.collected.set(each.listed.txid, each)
  }

  /** Adds a transaction that was looked at and, where it is not proven, its ancestors as {@link addAncestry} has them. */
  async addOutlined({ listed, inputs }: Outline): Promise<void> {
    const parents = parentsOf({ inputs })
    if (listed.proof === undefined) for (const parent of parents) await this.addAncestry(parent)
    this.seen.add(listed.txid)
    this.collected.set(listed.txid, { listed, parents })
  }

  /**
   * All of them, parents before children (BRC-62); else in the order in which they were added. So one of which all
   * others are ancestors stands last.
   */
  parentsFirst(): ListedTransaction[] {
    return parentsFirst(this.collected, ({ parents }) => parents).map(({ listed }) => listed)
  }
}
