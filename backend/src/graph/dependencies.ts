import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Attribute } from './listings.js'
import type { OutputRecord } from './records.js'

/**
 * Something that an answer depends on and a write may change. Things that only a reorganisation or the blocklist changes, such as
 * the content of an output or the origin of a name, are none: such changes outdate every answer.
 */
export type Dependency = string

const NAME = 'name '

export const dependency = {
  /** The spender of an outpoint: for the tip of an ordinal its next transfer, for a live node the next mint. */
  spend: (outpoint: Outpoint): Dependency => `spend ${formatOutpoint(outpoint)}`,
  proof: (txid: string): Dependency => `proof ${txid}`,
  /** How far a transaction is known to the network, by itself or by a descendant. */
  tier: (txid: string): Dependency => `tier ${txid}`,
  /** The places of stored outputs in their ordinals, except new steps at the end. */
  lineages: 'lineages',
  name: (name: string): Dependency => NAME + name,
  /** Which names there are, and when they were mined. */
  names: 'names',
  /** Which inscriptions there are, and when they were mined. */
  inscriptions: 'inscriptions',
  /** The ordinals found by a parent, but only additions: one that is no longer found has moved. */
  children: (parent: Pick<Attribute, 'hash'>): Dependency => `children ${parent.hash}`,
  /** Any change. */
  all: 'all',
} as const

/** What an ordinal at a step depends on: a step before the tip stays as it is. */
export function dependenciesOfStep({
  tip,
  output,
}: {
  tip: boolean
  output: { outpoint: Outpoint }
}): Dependency[] {
  return tip ? [dependency.lineages, dependency.spend(output.outpoint)] : [dependency.lineages]
}

/** What an output alone depends on: a parent that it claims counts as soon as its ordinal is known to be spent. */
export function dependenciesOfOutput(output: Pick<OutputRecord, 'parent' | 'claimedParent'>): Dependency[] {
  return output.parent === undefined && output.claimedParent === undefined ? [] : [dependency.lineages]
}
