import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBump } from '../../backend/src/protocol/bump.js'

/**
 * Where a transaction stands in the chain: by the height of its block and its place in there. Whatever it spends stands
 * before it, as a block holds parents before their children.
 */
export interface BlockPosition {
  height: number
  place: number
}

/** Of what is in no block: behind all that is. */
const NOWHERE = Number.POSITIVE_INFINITY

/**
 * @param options.ancestors How many unproven transactions it is built on, where it is not proven itself: it has more of them
 * than any of these, so that it comes behind them.
 */
export function positionOf(
  { txid, proof }: TransactionRecord,
  { ancestors }: { ancestors: number },
): BlockPosition {
  if (proof === undefined) return { height: NOWHERE, place: ancestors }
  const [lowest] = readBump(proof.merklePath, (message) => new BeefError(message)).levels
  for (const [place, { isTxid }] of lowest ?? []) if (isTxid) return { height: proof.height, place }
  throw new BeefError(`the merkle path of ${txid} does not contain it`)
}

export function isBefore(one: BlockPosition, other: BlockPosition): boolean {
  return one.height === other.height ? one.place < other.place : one.height < other.height
}
