import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { MapPart } from './read-map.js'

/** What a lineage is called by: its first output, as columns have it. */
export type Lineage = [txid: Buffer, vout: number]

/** About how many outputs go over into another lineage in the time that one spend is looked at again. */
export const MOVED_AS_ONE = 30
/** Of how many lineages it is looked at how long they are, to know how much others wait for a transaction. */
export const LINEAGES_BEHIND = 50

/** A stretch of a lineage: the first and the last step included. */
export interface Steps {
  lineage: Lineage
  from: number
  to: number
}

/** A lineage, and the first step of it from which on something is not as it was. */
export interface Change {
  lineage: Outpoint
  from: number
}

/** An output at a step of the lineage that it stands in. */
export interface StepRow {
  outpoint: Outpoint
  step: number
}

/** Where an output stands. */
export interface Place {
  satoshis: number
  /** Whether it is a coin in front of an ordinal, which is part of no answer. */
  isCarrier: boolean
  lineage: Lineage
  step: number
}

/** How the lineage of an output goes, read at once. The steps are those of its outputs. */
export interface LineageSummary extends Place {
  /** Whether nothing is missing before the first output: it received no 1-sat coin, or it is a name's origin. */
  isWhole: boolean
  /** Of the last output. */
  last: number
  /** Of the first and of the last output with content: where the lineage is whole, the first is the origin. */
  origin: number | undefined
  content: number | undefined
  /** Of the last output that names a parent. */
  parent: number | undefined
  /** Outputs that were read with it, by their steps. */
  outputs?: ReadonlyMap<number, OutputRecord>
  /** Where the MAP stands from the origin to this output, the last first, where that was read with it. */
  maps?: () => Promise<MapPart[]>
}

/**
 * What the reads of ordinals are made of, and each kind of database answers its own way: rows of `graph_outputs`, each found
 * in an index whatever the length of a lineage.
 */
export interface Lineages {
  /** Undefined where the store does not hold the output. */
  placeOf(outpoint: Outpoint): Promise<Place | undefined>
  /** Undefined where the store does not hold the output. */
  summaryOf(outpoint: Outpoint): Promise<LineageSummary | undefined>
  outputAt(outpoint: Outpoint): Promise<OutputRecord | undefined>
  /** The last output of a lineage. */
  lastOf(lineage: Lineage): Promise<StepRow | undefined>
  /** The first output of a lineage with content: where it is whole, the origin. */
  firstContentOf(lineage: Lineage): Promise<StepRow | undefined>
  /** Those of a lineage at some steps, by these. */
  outputsAt(places: { lineage: Lineage; steps: number[] }): Promise<Map<number, OutputRecord>>
  /** The last output of a stretch with content. */
  latestContent(steps: Steps): Promise<OutputRecord | undefined>
  /** What the last output of a stretch that names a parent names. */
  latestParent(steps: Steps): Promise<Outpoint | undefined>
  /** Whether nothing is missing before the first output of a lineage: it received no 1-sat coin, or it is a name's origin. */
  isWhole(lineage: Lineage): Promise<boolean>
  /** Outputs from a step on in their order, so many of them. */
  stepsFrom(place: { lineage: Lineage; step: number; limit: number }): Promise<StepRow[]>
}
