import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Attribute } from './listings.js'
import type { OutputRecord } from './records.js'

/**
 * Something that an answer follows from and that a write may change. What only a reorganisation or the blocklist changes, such
 * as the content of an output or the origin of a name, is none: those outdate every answer.
 */
export type Dependency = string

const NAME = 'name '

export const dependency = {
  /** What spends an outpoint: of the tip of an ordinal, where it goes; of a live node, the next mint. */
  spend: (outpoint: Outpoint): Dependency => `spend ${formatOutpoint(outpoint)}`,
  proof: (txid: string): Dependency => `proof ${txid}`,
  /** How far a transaction is known to the network, by itself or by what spends it. */
  tier: (txid: string): Dependency => `tier ${txid}`,
  /** Where stored outputs are in their ordinals, beside what continues them at the end. */
  lineages: 'lineages',
  name: (name: string): Dependency => NAME + name,
  /** Which names there are, and when they were mined. */
  names: 'names',
  /** Which inscriptions there are, and when they were mined. */
  inscriptions: 'inscriptions',
  /** Which ordinals are found by a parent: only that some are added. One that is found no more has moved. */
  children: (parent: Attribute): Dependency => `children ${parent.hash}`,
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

/** What an output alone follows from: a parent that it names counts as soon as its ordinal is known to be spent. */
export function dependenciesOfOutput(output: Pick<OutputRecord, 'parent' | 'claimedParent'>): Dependency[] {
  return output.parent === undefined && output.claimedParent === undefined ? [] : [dependency.lineages]
}
