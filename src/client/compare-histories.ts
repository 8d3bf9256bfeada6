import type { VerifiedHistory, VerifiedStep } from './verify-history.js'

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
  const [length, otherLength] = [lengthOf(one), lengthOf(other)]
  for (let at = 0; at < length; at++) {
    if (at === otherLength) return 'wins'
    const [step, counterpart] = [stepAt(one, at), stepAt(other, at)]
    if (step.txid === counterpart.txid && step.vout === counterpart.vout) continue
    if (isInBlock(step) === isInBlock(counterpart)) return 'conflict'
    return isInBlock(step) ? 'wins' : 'loses'
  }
  return length < otherLength ? 'loses' : 'same'
}

/** How many transactions lead from the genesis to the tip: the mints to the origin, then the steps of the ordinal. */
function lengthOf({ name, tip }: VerifiedHistory): number {
  return name.line.length + tip.path.length - 1
}

/** One of these transactions, with the output of the ordinal if it is a step. */
function stepAt(
  { name: { line }, tip: { path } }: VerifiedHistory,
  at: number,
): { txid: string; vout?: number; height?: number } {
  const mint = line[at]
  if (mint !== undefined) return mint
  const { outpoint, height } = path[at - line.length + 1] as VerifiedStep
  return { ...outpoint, ...(height !== undefined && { height }) }
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

/** The histories that lose to no other, without duplicates. */
export function leadingHistories(all: readonly VerifiedHistory[]): VerifiedHistory[] {
  const leading = all.filter((one) =>
    all.every((other) => other === one || compareHistories(one, other) !== 'loses'),
  )
  return leading.filter(
    (one, at) => !leading.slice(0, at).some((earlier) => compareHistories(one, earlier) === 'same'),
  )
}
