import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { GraphRecords } from './records.js'

/**
 * Something that an answer follows from and that a write may change. What only a reorganisation or the blocklist changes, such
 * as the content of an output or the origin of a name, is none: those outdate every answer.
 */
export type Dependency = string

export const dependency = {
  /** What spends an outpoint: of the tip of an ordinal, where it goes; of a live node, the next mint. */
  spend: (outpoint: Outpoint): Dependency => `spend ${formatOutpoint(outpoint)}`,
  /** The proof of a transaction. */
  proof: (txid: string): Dependency => `proof ${txid}`,
  /** Where stored outputs are in their ordinals, beside what continues them at the end. */
  lineages: 'lineages',
  /** Anything. */
  all: 'all',
} as const

/** What an ordinal at a step follows from: a step before the tip stays as it is. */
export function dependenciesOfStep({
  tip,
  output,
}: {
  tip: boolean
  output: { outpoint: Outpoint }
}): Dependency[] {
  return tip ? [dependency.lineages, dependency.spend(output.outpoint)] : [dependency.lineages]
}

/** What new transactions change, with all that is derived from them in the same write. */
export function changesBy({
  transactions,
  spends,
}: Pick<GraphRecords, 'transactions' | 'spends'>): Dependency[] {
  return [
    dependency.all,
    ...transactions.map(({ txid }) => dependency.proof(txid)),
    ...spends.map(({ outpoint }) => dependency.spend(outpoint)),
  ]
}
