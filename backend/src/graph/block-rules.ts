import { formatOutpoint } from '../protocol/outpoint.js'
import type { TransactionView } from '../protocol/transaction.js'
import type { TransactionsReader } from './graph-store.js'
import { memoizeByObject } from './memoize-by-object.js'
import type { BeefContents } from './read-beef.js'
import { admittedTransactions, transactionRecords } from './transaction-records.js'

/**
 * What makes an unproven transaction of a BEEF one that no block can hold, though every script in it may pass: a
 * verifier that runs scripts input by input says yes to a transaction without any, and counts a coin that is spent twice
 * in it twice. Undefined where nothing does. What a merkle path proves, the chain has judged. Worked out once for a BEEF:
 * the host asks, and each of its topics.
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
  if (inputs.length === 0) return 'spends nothing'
  if (outputs.length === 0) return 'has no outputs'
  if (new Set(inputs.map(formatOutpoint)).size < inputs.length) return 'spends a coin twice'
  return undefined
}

/** Below this, a lock time is a height; from here on, seconds since 1970 (as every node has it). */
const FIRST_TIME = 500_000_000
const FINAL_SEQUENCE = 0xffffffff

/** How far a chain has come: the height of its last block, and its time in seconds since 1970. */
export interface ChainPosition {
  height: number
  time: number
}

/**
 * The chain position from which on a block can hold a transaction with all that it is built on; undefined where one can
 * already. What a merkle path proves, of the BEEF or of the store, the chain has judged.
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

/** A lock time counts where not all inputs have given up their say. */
function isLocked({ lockTime, inputs }: TransactionView): boolean {
  return lockTime > 0 && inputs.some(({ sequence }) => sequence !== FINAL_SEQUENCE)
}

/**
 * Whether the next block may hold what has a lock: its height is one more than the last one's, and lock times are compared
 * with the height of the block that holds a transaction, and with the time of the one before (BIP 113).
 */
export function isOver(lock: ChainPosition, { height, time }: ChainPosition): boolean {
  return lock.height <= height && lock.time < time
}
