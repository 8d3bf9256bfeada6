import type { OutputRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  isComplete,
  type Lineage,
  lineageOf,
  numberIn,
  outpointColumns,
  outpointOf,
} from '../rows/columns.js'
import { OUTPUT, outputOf } from '../rows/record-rows.js'
import { anyOutpoint, inLineage, type Row, type RowReader } from '../rows/rows.js'
import type { LineageSummary, Lookups, MapPart, Place } from './lookups.js'
import { type BlobChunks, chunksIn } from './read-blobs.js'

/** A stretch of a lineage, including its first and last step. */
export interface Steps {
  lineage: Lineage
  from: number
  to: number
}

/** A changed lineage, and the first step that differs. */
export interface LineageChange {
  lineage: Lineage
  from: number
}

interface StepRow {
  outpoint: Outpoint
  step: number
}

/** The lookups in `graph_outputs` that reads of ordinals are built on. Each uses an index, whatever the length of a lineage. */
export class Lineages implements Maps {
  readonly chunk: BlobChunks['chunk']
  readonly summaryOf: Lookups['summaryOf']

  constructor(
    private readonly rows: RowReader,
    private readonly lookups: Pick<Lookups, 'summaryOf' | 'mapRows'>,
  ) {
    this.chunk = chunksIn(rows).chunk
    this.summaryOf = (outpoint) => lookups.summaryOf(outpoint)
  }

  /** Undefined if the store does not hold the output. */
  async placeOf(outpoint: Outpoint): Promise<Place | undefined> {
    const row = await this.rows.first(OUTPUTS, outpointColumns(outpoint), { fields: PLACE })
    return row && placeIn(row)
  }

  async outputAt(outpoint: Outpoint): Promise<OutputRecord | undefined> {
    const row = await this.rows.first(OUTPUTS, outpointColumns(outpoint), { fields: OUTPUT })
    return row && outputOf(row)
  }

  /** The first output of a lineage. */
  async firstOf(lineage: Lineage): Promise<StepRow | undefined> {
    const row = await this.rows.first(OUTPUTS, inLineage(lineage), { sort: { step: 1 }, fields: STEP })
    return row && stepOf(row)
  }

  /** The last output of a lineage. */
  async lastOf(lineage: Lineage): Promise<StepRow | undefined> {
    const row = await this.rows.first(OUTPUTS, inLineage(lineage), { sort: { step: -1 }, fields: STEP })
    return row && stepOf(row)
  }

  /** The first output of a complete lineage with content: the origin. */
  async firstContentOf(lineage: Lineage): Promise<StepRow | undefined> {
    const inscribed = { ...inLineage(lineage), content_step: { $gte: 0 } }
    const row = await this.rows.first(OUTPUTS, inscribed, { sort: { content_step: 1 }, fields: STEP })
    return row && stepOf(row)
  }

  /** The outputs at some steps of a lineage, by step. */
  async outputsAt(places: { lineage: Lineage; steps: number[] }): Promise<Map<number, OutputRecord>> {
    const at = { ...inLineage(places.lineage), step: { $in: places.steps } }
    const rows = await this.rows.all(OUTPUTS, at, { fields: [...OUTPUT, 'step'] })
    return new Map(rows.map((row) => [Number(row.step), outputOf(row)]))
  }

  /** The last output of a stretch that has content. */
  async latestContent({ lineage, from, to }: Steps): Promise<OutputRecord | undefined> {
    const within = { ...inLineage(lineage), content_step: { $gte: from, $lte: to } }
    const row = await this.rows.first(OUTPUTS, within, { sort: { content_step: -1 }, fields: OUTPUT })
    return row && outputOf(row)
  }

  /** The parent of the last output of a stretch with one that counts. */
  async latestParent({ lineage, from, to }: Steps): Promise<Outpoint | undefined> {
    const within = { ...inLineage(lineage), parent_step: { $gte: from, $lte: to } }
    const fields = ['parent_txid', 'parent_vout']
    const row = await this.rows.first(OUTPUTS, within, { sort: { parent_step: -1 }, fields })
    return row && outpointOf({ txid: row.parent_txid, vout: row.parent_vout })
  }

  /** At most `limit` outputs from a step on, in order. */
  async stepsFrom({
    lineage,
    step,
    limit,
  }: {
    lineage: Lineage
    step: number
    limit: number
  }): Promise<StepRow[]> {
    const from = { ...inLineage(lineage), step: { $gte: step } }
    return (await this.rows.all(OUTPUTS, from, { sort: { step: 1 }, limit, fields: STEP })).map(stepOf)
  }

  async latestMaps(stretch: Steps & { limit: number }): Promise<MapPage> {
    const { rows, last } = await this.lookups.mapRows({ ...stretch, order: -1 })
    return { parts: rows.map(mapPartOf), next: last && last - 1 }
  }
}

const OUTPUTS = 'graph_outputs'
const STEP = ['txid', 'vout', 'step']
/** The columns that {@link placeIn} reads. */
const PLACE = ['satoshis', 'carrier', 'lineage_txid', 'lineage_vout', 'step']

export function placeIn(row: Row): Place {
  return {
    satoshis: Number(row.satoshis),
    isCarrier: Number(row.carrier) === 1,
    lineage: lineageOf(row),
    step: Number(row.step),
  }
}

function stepOf(row: Row): StepRow {
  return { outpoint: outpointOf(row), step: Number(row.step) }
}

/** Leaves out blocked outputs. */
export async function unblocked(rows: RowReader, outputs: Row[]): Promise<Row[]> {
  if (outputs.length === 0) return []
  const fields = ['txid', 'vout']
  const found = await rows.all('graph_blocked', anyOutpoint(outputs.map(outpointOf)), { fields })
  const blocked = new Set(found.map((row) => formatOutpoint(outpointOf(row))))
  return outputs.filter((output) => !blocked.has(formatOutpoint(outpointOf(output))))
}

function mapPartOf(row: Row): MapPart {
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

/** The lookups of MAP along lineages. */
export interface Maps extends BlobChunks {
  /** The last outputs of a stretch that have MAP, without blocked ones: their MAP does not count later either. */
  latestMaps(steps: Steps & { limit: number }): Promise<MapPage>
}

/** A lineage of fewer outputs than this is short: its summary is made of all its outputs. */
export const SHORT = 8

/** The columns read of each output of a short lineage. */
export const SHORT_LINEAGE = [...OUTPUT, 'step', 'content_step', 'map_step', 'merged_length']

/**
 * Summarises a complete lineage by all its outputs: if the database is another process, that is faster than one lookup per end.
 *
 * @param outputs All of them, with the columns {@link SHORT_LINEAGE}.
 */
export function shortLineage(rows: RowReader, place: Place, outputs: Row[]): LineageSummary {
  const ordered = outputs.toSorted((a, b) => Number(b.step) - Number(a.step))
  const steps = (column: 'step' | 'content_step' | 'parent_step'): number[] =>
    ordered.flatMap((row) => numberIn(row[column]) ?? [])
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
    isComplete: isComplete(place.lineage),
    last,
    origin,
    content,
    parent,
    outputs: new Map(ordered.map((row) => [Number(row.step), outputOf(row)])),
    maps: async () => (mapped.length === 0 ? [] : (await unblocked(rows, mapped)).map(mapPartOf)),
  }
}
