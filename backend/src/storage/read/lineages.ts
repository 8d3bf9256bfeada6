import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { type Lineage, numberIn, type OutpointRow, outpointOf } from '../rows/columns.js'
import { OUTPUT, type OutputRow, outputOf } from '../rows/record-rows.js'
import type { BlobChunks } from './read-blobs.js'

/** About as many outputs are moved into another lineage in the time that one spend is reconsidered. */
export const MOVED_OUTPUTS_PER_SPEND = 30
/** For how many lineages the length is read, to estimate how much work a transaction brings. */
export const LINEAGES_SAMPLED = 50

/** A stretch of a lineage, including its first and last step. */
export interface Steps {
  lineage: Lineage
  from: number
  to: number
}

/** A changed lineage, and the first step that differs. */
export interface LineageChange {
  lineage: Outpoint
  from: number
}

export interface StepRow {
  outpoint: Outpoint
  step: number
}

/** The place of an output in its lineage. */
export interface Place {
  satoshis: number
  /** Whether it is a coin in front of an ordinal, which is part of no answer. */
  isCarrier: boolean
  lineage: Lineage
  step: number
}

/** The summary of a lineage, as seen from one of its outputs. Numbers are steps. */
export interface LineageSummary extends Place {
  /** Whether nothing is missing before the first output: it received no 1-sat coin, or it is a name's origin. */
  isComplete: boolean
  last: number
  /** The first output with content: in a complete lineage, the origin. */
  origin: number | undefined
  /** The last output with content. */
  content: number | undefined
  /** The last output that names a parent. */
  parent: number | undefined
  /** Outputs that were read along with it, by step. */
  outputs?: ReadonlyMap<number, OutputRecord>
  /** Where the MAP from the origin to this output is stored, last first, if that was read along with it. */
  maps?: () => Promise<MapPart[]>
}

/**
 * The lookups in `graph_outputs` that reads of ordinals are built on, implemented by each engine. Each uses an index,
 * whatever the length of a lineage.
 */
export interface Lineages {
  /** Undefined if the store does not hold the output. */
  placeOf(outpoint: Outpoint): Promise<Place | undefined>
  /** Undefined if the store does not hold the output. */
  summaryOf(outpoint: Outpoint): Promise<LineageSummary | undefined>
  outputAt(outpoint: Outpoint): Promise<OutputRecord | undefined>
  /** The last output of a lineage. */
  lastOf(lineage: Lineage): Promise<StepRow | undefined>
  /** The first output of a lineage with content: in a complete lineage, the origin. */
  firstContentOf(lineage: Lineage): Promise<StepRow | undefined>
  /** The outputs at some steps of a lineage, by step. */
  outputsAt(places: { lineage: Lineage; steps: number[] }): Promise<Map<number, OutputRecord>>
  /** The last output of a stretch that has content. */
  latestContent(steps: Steps): Promise<OutputRecord | undefined>
  /** The parent named by the last output of a stretch that names one. */
  latestParent(steps: Steps): Promise<Outpoint | undefined>
  /** Whether nothing is missing before the first output: it received no 1-sat coin, or it is a name's origin. */
  isComplete(lineage: Lineage): Promise<boolean>
  /** At most `limit` outputs from a step on, in order. */
  stepsFrom(place: { lineage: Lineage; step: number; limit: number }): Promise<StepRow[]>
}

/** The MAP kept with an output: its own, or if `merged` a snapshot of all MAP up to it. `length` is in bytes. */
export interface MapPart {
  outpoint: Outpoint
  merged: boolean
  length: number
}

export function mapPartOf(row: OutpointRow & { map_length: unknown; merged_length: unknown }): MapPart {
  const merged = numberIn(row.merged_length)
  return {
    outpoint: outpointOf(row),
    merged: merged !== undefined,
    length: merged ?? Number(row.map_length),
  }
}

/** A page of MAP that is read backwards. */
export interface MapPage {
  /** Last first. */
  parts: MapPart[]
  /** The step at which the page before it ends; undefined if there is none. */
  next: number | undefined
}

/** The lookups of MAP along lineages, implemented by each engine. */
export interface Maps extends BlobChunks {
  /** The last outputs of a stretch that have MAP, without blocked ones: their MAP does not count later either. */
  latestMaps(steps: Steps & { limit: number }): Promise<MapPage>
}

/** A lineage of fewer outputs than this is short: its summary is made of all its outputs. */
export const SHORT = 8

/** The columns read of each output of a short lineage. */
export const SHORT_LINEAGE = [...OUTPUT, 'step', 'content_step', 'parent_step', 'map_step', 'merged_length']

interface ShortLineageRow extends OutputRow {
  step: unknown
  content_step: unknown
  parent_step: unknown
  map_step: unknown
  merged_length: unknown
}

/**
 * Summarises a lineage by all its outputs: if the database is another process, that is faster than one lookup per end.
 *
 * @param read.isComplete Looks up whether nothing is missing before the first, if the rows do not show it.
 * @param read.unblocked Leaves out blocked outputs.
 */
export async function shortLineage(
  place: Place,
  rows: ShortLineageRow[],
  read: {
    isComplete: () => Promise<boolean>
    unblocked: <Row extends OutpointRow>(rows: Row[]) => Promise<Row[]>
  },
): Promise<LineageSummary> {
  const ordered = rows.toSorted((a, b) => Number(b.step) - Number(a.step))
  const steps = (column: 'step' | 'content_step' | 'parent_step'): number[] =>
    ordered.flatMap((row) => numberIn(row[column]) ?? [])
  const first = ordered.at(-1)
  const [content] = steps('content_step')
  const [parent] = steps('parent_step')
  const [last = place.step] = steps('step')
  const origin = steps('content_step').at(-1)
  const mapped = ordered.filter((row) => {
    const step = numberIn(row.map_step)
    return step !== undefined && origin !== undefined && step >= origin && step <= place.step
  })
  return {
    ...place,
    isComplete: (first !== undefined && isFirstOfAll(first)) || (await read.isComplete()),
    last,
    origin,
    content,
    parent,
    outputs: new Map(ordered.map((row) => [Number(row.step), outputOf(row)])),
    maps: async () => (mapped.length === 0 ? [] : (await read.unblocked(mapped)).map(mapPartOf)),
  }
}

function isFirstOfAll(row: ShortLineageRow): boolean {
  return Number(row.step) === 0 && Number(row.unsettled) === 0 && row.previous_txid === null
}
