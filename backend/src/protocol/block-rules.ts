import { formatOutpoint, type Outpoint } from './outpoint.js'
import type { TransactionView } from './transaction.js'

// Rules of consensus for a transaction beyond its scripts. Servers and clients accept nothing unproven that breaks one.

/** Two hashes side by side. With enough work, everything of an inner node of a merkle tree can be chosen but its length. */
const INNER_NODE_BYTES = 64

/** Whether a transaction could be an inner node of a merkle tree: a path would prove it although no block holds it. */
export function isInnerNode({ raw }: Pick<TransactionView, 'raw'>): boolean {
  return raw.length === INNER_NODE_BYTES
}

/**
 * Why no block can hold a transaction, even if all its scripts pass: a verifier that runs scripts input by input accepts a
 * transaction without inputs, and counts a coin twice that it spends twice. Undefined if nothing is wrong.
 */
export function reasonAgainst({
  inputs,
  outputs,
}: {
  inputs: readonly Outpoint[]
  outputs: readonly unknown[]
}): string | undefined {
  if (inputs.length === 0) return 'has no inputs'
  if (outputs.length === 0) return 'has no outputs'
  if (new Set(inputs.map(formatOutpoint)).size < inputs.length) return 'spends the same output twice'
  return undefined
}

/** Below this, a lock time is a height; from here on, seconds since 1970 (consensus, `LOCKTIME_THRESHOLD`). */
const FIRST_TIME = 500_000_000
const FINAL_SEQUENCE = 0xffffffff
/** About how far the median time of the last eleven blocks is behind the clock, in seconds (BIP 113). */
const MEDIAN_TIME_LAG = 3600

/** How far a chain has come: the height of its last block, and the median time of its last eleven in seconds since 1970. */
export interface ChainPosition {
  height: number
  time: number
}

/** The position of a chain at a height, with its time estimated from the clock. */
export function positionAt(height: number): ChainPosition {
  return { height, time: Math.floor(Date.now() / 1000) - MEDIAN_TIME_LAG }
}

/**
 * The position from which a block can hold a transaction; undefined if one always can: all inputs are final, or no lock time is set.
 */
export function lockIn({
  lockTime,
  inputs,
}: {
  lockTime: number
  inputs: readonly { sequence?: number | undefined }[]
}): ChainPosition | undefined {
  const isFinal = inputs.every(({ sequence = FINAL_SEQUENCE }) => sequence === FINAL_SEQUENCE)
  if (lockTime === 0 || isFinal) return undefined
  return lockTime < FIRST_TIME ? { height: lockTime, time: 0 } : { height: 0, time: lockTime }
}

/**
 * Whether the next block may hold a locked transaction. Its height is one more than that of the last block; lock times are
 * compared with the height of the block with the transaction, and with the median time before it (BIP 113).
 */
export function isOver(lock: ChainPosition, { height, time }: ChainPosition): boolean {
  return lock.height <= height && lock.time < time
}

/** How many confirmations a coinbase has when the next block may spend it (consensus). */
export const COINBASE_MATURITY = 100
