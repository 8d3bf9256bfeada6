import { numberIn, type OutpointRow } from '../rows/columns.js'
import { OUTPUT, type OutputRow, outputOf } from '../rows/record-rows.js'
import type { LineageSummary, Place } from './lineages.js'
import { mapPart } from './read-map.js'

/** How many outputs most lineages are shorter than: how such a one goes is seen by all of them. */
export const SHORT = 8

/** What is read of each. */
export const SHORT_LINEAGE = [...OUTPUT, 'step', 'content_step', 'parent_step', 'map_step', 'merged_length']

/** An output, and where it stands in its lineage. */
export interface ShortLineageRow extends OutputRow {
  step: unknown
  content_step: unknown
  parent_step: unknown
  map_step: unknown
  merged_length: unknown
}

/**
 * How a lineage goes, by all its outputs: where the database is another process, this takes less than to ask for each end.
 *
 * @param read.isWhole Whether nothing is missing before the first, where that is not seen by itself.
 * @param read.unblocked Those of some outputs that are not blocked.
 */
export async function shortLineage(
  place: Place,
  rows: ShortLineageRow[],
  read: {
    isWhole: () => Promise<boolean>
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
  const said = ordered.filter((row) => {
    const step = numberIn(row.map_step)
    return step !== undefined && origin !== undefined && step >= origin && step <= place.step
  })
  return {
    ...place,
    isWhole: (first !== undefined && startsAll(first)) || (await read.isWhole()),
    last,
    origin,
    content,
    parent,
    outputs: new Map(ordered.map((row) => [Number(row.step), outputOf(row)])),
    maps: async () => (said.length === 0 ? [] : (await read.unblocked(said)).map(mapPart)),
  }
}

/** Whether nothing stood before an output. */
function startsAll(row: ShortLineageRow): boolean {
  return Number(row.step) === 0 && Number(row.unsettled) === 0 && row.previous_txid === null
}
