import { LRUCache } from 'lru-cache'
import type { SpendRecord, TransactionRecord } from '../../graph/records.js'
import type { TransactionTables } from './graph-tables.js'

/** How much one write remembers: spends, and bytes of raw transactions. What a large transaction is asked for fits. */
const MAX_SPENDS = 50_000
const MAX_BYTES = 16 * 1024 * 1024

/** Tables of which a write may change what is remembered. */
const CHANGING = new Set(['graph_transactions', 'graph_pieces', 'graph_spends', 'graph_silent_spends'])

/**
 * The tables of one write, which asks several times what a transaction spends and what it is: to judge it, to settle its
 * outputs, and to keep what it is built on.
 */
export function memoizedTables(tables: TransactionTables): TransactionTables {
  const spends = new LRUCache<string, SpendRecord[]>({
    maxSize: MAX_SPENDS,
    sizeCalculation: ({ length }) => length + 1,
  })
  const transactions = new LRUCache<string, TransactionRecord>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ raw }) => raw.length,
  })
  const forget = (): void => {
    spends.clear()
    transactions.clear()
  }
  const forgetting =
    <Given extends unknown[], Result>(write: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      forget()
      return await write(...given)
    }
  return {
    ...tables,
    async spendsBy(spender) {
      const found = spends.get(spender) ?? (await tables.spendsBy(spender))
      spends.set(spender, found)
      return found
    },
    async get(txid) {
      const found = transactions.get(txid) ?? (await tables.get(txid))
      if (found !== undefined) transactions.set(txid, found)
      return found
    },
    async insertNew(table, rows) {
      if (rows.length > 0 && CHANGING.has(table)) forget()
      await tables.insertNew(table, rows)
    },
    setSpentValue: forgetting(tables.setSpentValue),
    setProof: forgetting(tables.setProof),
    takeProofs: forgetting(tables.takeProofs),
    takeSpends: forgetting(tables.takeSpends),
    deleteChunks: forgetting(tables.deleteChunks),
    deleteTransaction: forgetting(tables.deleteTransaction),
  }
}
