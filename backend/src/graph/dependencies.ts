import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Attribute } from './attributes.js'
import type { AdmissionRecord, GraphRecords, OutputRecord } from './records.js'

/**
 * Something that an answer follows from and that a write may change. What only a reorganisation or the blocklist changes, such
 * as the content of an output or the origin of a name, is none: those outdate every answer.
 */
export type Dependency = string

const NAME = 'name '

export const dependency = {
  /** What spends an outpoint: of the tip of an ordinal, where it goes; of a live node, the next mint. */
  spend: (outpoint: Outpoint): Dependency => `spend ${formatOutpoint(outpoint)}`,
  /** The proof of a transaction. */
  proof: (txid: string): Dependency => `proof ${txid}`,
  /** How far a transaction is known to the network, by itself or by what spends it. */
  tier: (txid: string): Dependency => `tier ${txid}`,
  /** Where stored outputs are in their ordinals, beside what continues them at the end. */
  lineages: 'lineages',
  /** Whether a name is claimed. */
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

/** The name whose claim this is; undefined if it is something else. */
export function nameIn(each: Dependency): string | undefined {
  return each.startsWith(NAME) ? each.slice(NAME.length) : undefined
}

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

/** What a write has changed; undefined if that is not known: anything that an answer may depend on. */
export type Changes = readonly Dependency[] | undefined

/**
 * What a write of records has changed, with all that is derived from them in it. Not known if it admitted outputs of
 * transactions that came earlier, or was given what the host's engine derived: that may continue or begin ordinals whose
 * outputs it does not name.
 *
 * @param written.derived What was noted of what is derived ({@link RecordOptions.onDerived}).
 */
export function changesOfWrite(
  { transactions, spends, nodes, names, outputs }: GraphRecords,
  { admitted, derived }: { admitted: AdmissionRecord[]; derived: readonly Dependency[] },
): Changes {
  const txids = new Set(transactions.map(({ txid }) => txid))
  const isOwn = admitted.every(({ outpoint }) => txids.has(outpoint.txid))
  if (!isOwn || nodes.length + names.length + outputs.length > 0) return undefined
  return [
    dependency.all,
    ...transactions.map(({ txid }) => dependency.proof(txid)),
    ...spends.map(({ outpoint }) => dependency.spend(outpoint)),
    ...derived,
  ]
}
