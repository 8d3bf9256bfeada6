import { formatOutpoint } from '../protocol/outpoint.js'
import type { TransactionView } from '../protocol/transaction.js'
import type { TransactionsReader } from './graph-store.js'
import { memoizeByObject } from './memoize-by-object.js'
import type { BeefContents } from './read-beef.js'
import { admittedTransactions, transactionRecords } from './transaction-records.js'

/**
 * Why no block can hold an unproven transaction of a BEEF, though all its scripts may pass: a verifier that runs scripts input
 * by input accepts a transaction without inputs, and counts a coin twice that is spent twice in it. Undefined if nothing is
 * wrong. What a merkle path proves, the chain has judged. Computed once per BEEF: the host asks, and each of its topics.
 */
export const unsoundness = memoizeByObject((beef: BeefContents): string | undefined => {
  for (const { txid, proof } of admittedTransactions(beef)) {
    const transaction = proof === undefined ? beef.transaction(txid) : undefined
    const reason = transaction && reasonAgainst(transaction)
    if (reason !== undefined) return `${txid} ${reason}`
  }
  return undefined
})

function reasonAgainst({ inputs, outputs }: TransactionView): string | undefined {
  if (inputs.length === 0) return 'has no inputs'
  if (outputs.length === 0) return 'has no outputs'
  if (new Set(inputs.map(formatOutpoint)).size < inputs.length) return 'spends the same output twice'
  return undefined
}

/** Below this, a lock time is a height; from here on, seconds since 1970 (consensus, `LOCKTIME_THRESHOLD`). */
const FIRST_TIME = 500_000_000
const FINAL_SEQUENCE = 0xffffffff

/** How far a chain has come: the height of its last block, and its time in seconds since 1970. */
export interface ChainPosition {
  height: number
  time: number
}

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
    if (transaction === undefined || !isLocked(transaction)) continue
    if ((await store.heightOf(txid)) !== undefined) continue
    const { lockTime } = transaction
    if (lockTime < FIRST_TIME) lock.height = Math.max(lock.height, lockTime)
    else lock.time = Math.max(lock.time, lockTime)
  }
  return lock.height === 0 && lock.time === 0 ? undefined : lock
}

/** A lock time applies unless all inputs have the final sequence number. */
function isLocked({ lockTime, inputs }: TransactionView): boolean {
  return lockTime > 0 && inputs.some(({ sequence }) => sequence !== FINAL_SEQUENCE)
}

/**
 * Whether the next block may hold a locked transaction. Its height is one more than that of the last block; lock times are
 * compared with the height of the block with the transaction, and with the median time before it (BIP 113).
 */
export function isOver(lock: ChainPosition, { height, time }: ChainPosition): boolean {
  return lock.height <= height && lock.time < time
}
