import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { VerifiedHistory } from './verify-history.js'

/**
 * How what one index shows stands to what another does, both having been checked:
 *
 * - `same`: the same origin and the same tip;
 * - `beats`: it shows the ordinal further on, or a step that is in a block where the other shows one that is in none;
 * - `beaten`: the other way round;
 * - `conflict`: both cannot be true, and nothing that was checked says which is.
 */
export type Comparison = 'same' | 'beats' | 'beaten' | 'conflict'

/**
 * Where two ways from the genesis to a tip part, they spend one coin: a node that is mined twice, or an ordinal that goes
 * two ways. A chain holds one of them, so the one that is proven counts. Where neither is, or where both are said to be,
 * no rule of a reader may choose (BRC-174 2.3 and 4).
 */
export function compare(one: VerifiedHistory, other: VerifiedHistory): Comparison {
  const [way, otherWay] = [wayOf(one), wayOf(other)]
  for (const [at, step] of way.entries()) {
    const beside = otherWay[at]
    if (beside === undefined) return 'beats'
    if (step.place !== beside.place) return byProof(isInBlock(step), isInBlock(beside))
  }
  return way.length < otherWay.length ? 'beaten' : 'same'
}

/** The mints from the genesis to the origin, and the places of the ordinal behind it. */
function wayOf({ name, tip }: VerifiedHistory): { place: string; height?: number }[] {
  const mints = name.line.map((mint) => ({ ...mint, place: mint.txid }))
  const steps = tip.path.slice(1).map((step) => ({ ...step, place: formatOutpoint(step.outpoint) }))
  return [...mints, ...steps]
}

function byProof(one: boolean, other: boolean): Comparison {
  if (one === other) return 'conflict'
  return one ? 'beats' : 'beaten'
}

/** The heights of all transactions that one of them proves to be in a block, by txid: they hold for the others, too. */
export function provenHeights(all: readonly VerifiedHistory[]): ReadonlyMap<string, number> {
  const heights = new Map<string, number>()
  for (const { name, tip } of all) {
    const steps = tip.path.map(({ outpoint: { txid }, height }) => ({ txid, height }))
    for (const { txid, height } of [...name.line, ...steps])
      if (height !== undefined) heights.set(txid, height)
  }
  return heights
}

/** The same with what others prove of it. */
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

/** Those that none of the others beats, without those that show the same as one of them. */
export function leadingHistories(all: readonly VerifiedHistory[]): VerifiedHistory[] {
  const standing = all.filter((one) => all.every((other) => compare(one, other) !== 'beaten'))
  return standing.filter(
    (one, at) => !standing.slice(0, at).some((earlier) => compare(one, earlier) === 'same'),
  )
}
