import { type ChainPosition, lockIn, reasonAgainst } from '../protocol/block-rules.js'
import type { TransactionsReader } from './graph-store.js'
import { memoizeByObject } from './memoize-by-object.js'
import type { BeefContents } from './read-beef.js'
import { admittedTransactions, transactionRecords } from './transaction-records.js'

/**
 * Why no block can hold an unproven transaction of a BEEF, though all its scripts may pass ({@link reasonAgainst}). Undefined
 * if nothing is wrong. What a merkle path proves, the chain has judged. Computed once per BEEF: the host asks, and each of its
 * topics.
 */
export const unsoundness = memoizeByObject((beef: BeefContents): string | undefined => {
  for (const { txid, proof } of admittedTransactions(beef)) {
    const transaction = proof === undefined ? beef.transaction(txid) : undefined
    const reason = transaction && reasonAgainst(transaction)
    if (reason !== undefined) return `${txid} ${reason}`
  }
  return undefined
})

/**
 * The chain position from which a block can hold a transaction and its ancestors; undefined if one can already. What a merkle
 * path of the BEEF or of the store proves, the chain has judged.
 */
export async function lockOf(
  beef: BeefContents,
  store: Pick<TransactionsReader, 'heightOf'>,
): Promise<ChainPosition | undefined> {
  const lock = { height: 0, time: 0 }
  for (const { txid, proof } of transactionRecords(beef).transactions) {
    const transaction = proof === undefined ? beef.transaction(txid) : undefined
    const own = transaction && lockIn(transaction)
    if (own === undefined || (await store.heightOf(txid)) !== undefined) continue
    lock.height = Math.max(lock.height, own.height)
    lock.time = Math.max(lock.time, own.time)
  }
  return lock.height === 0 && lock.time === 0 ? undefined : lock
}
