import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { VerifiedHistory } from './verify-history.js'

/**
 * How one verified history compares with another:
 *
 * - `same`: the same origin and the same tip;
 * - `wins`: it follows the ordinal further, or has a step in a block where the other has a different, unconfirmed one;
 * - `loses`: the other way round;
 * - `conflict`: they exclude each other, and nothing verified says which is right.
 */
export type HistoryComparison = 'same' | 'wins' | 'loses' | 'conflict'

/**
 * Where two paths from the genesis to a tip diverge, they spend the same coin: a node mined twice, or an ordinal sent
 * two ways. A chain holds one of them, so the confirmed one counts. If neither is confirmed, or both claim to be, a
 * reader must not choose (BRC-174 2.3 and 4).
 */
export function compareHistories(one: VerifiedHistory, other: VerifiedHistory): HistoryComparison {
  const [path, otherPath] = [pathOf(one), pathOf(other)]
  for (const [at, step] of path.entries()) {
    const counterpart = otherPath[at]
    if (counterpart === undefined) return 'wins'
    if (step.place === counterpart.place) continue
    if (isInBlock(step) === isInBlock(counterpart)) return 'conflict'
    return isInBlock(step) ? 'wins' : 'loses'
  }
  return path.length < otherPath.length ? 'loses' : 'same'
}

/** The mints from the genesis to the origin, then the places of the ordinal. */
function pathOf({ name, tip }: VerifiedHistory): { place: string; height?: number }[] {
  const mints = name.line.map((mint) => ({ ...mint, place: mint.txid }))
  const steps = tip.path.slice(1).map((step) => ({ ...step, place: formatOutpoint(step.outpoint) }))
  return [...mints, ...steps]
}

/** The block height of every transaction that any of the histories proves, by txid: proven for one is proven for all. */
export function provenHeights(all: readonly VerifiedHistory[]): ReadonlyMap<string, number> {
  const heights = new Map<string, number>()
  for (const { name, tip } of all) {
    const steps = tip.path.map(({ outpoint: { txid }, height }) => ({ txid, height }))
    for (const { txid, height } of [...name.line, ...steps])
      if (height !== undefined) heights.set(txid, height)
  }
  return heights
}

/** A history with the block heights that other histories prove. */
export function withHeights(
  { name, tip }: VerifiedHistory,
  heights: ReadonlyMap<string, number>,
): VerifiedHistory {
  const heightOf = (txid: string) => {
    const height = heights.get(txid)
    return height === undefined ? {} : { height }
  }
  const line = name.line.map((mint) => ({ ...mint, ...heightOf(mint.txid) }))
  const path = tip.path.map((step) => ({ ...step, ...heightOf(step.outpoint.txid) }))
  return {
    name: { ...name, line, proven: line.every(isInBlock), ...heightOf(name.origin.txid) },
    tip: { ...tip, path, proven: path.slice(1).every(isInBlock) },
  }
}

function isInBlock({ height }: { height?: number }): boolean {
  return height !== undefined
}

/** The histories that lose to no other, each of them once. */
export function leadingHistories(all: readonly VerifiedHistory[]): VerifiedHistory[] {
  const leading = all.filter((one) => all.every((other) => compareHistories(one, other) !== 'loses'))
  return leading.filter(
    (one, at) => !leading.slice(0, at).some((earlier) => compareHistories(one, earlier) === 'same'),
  )
}
