import { ORIGIN, type OrdinalStep, TIP } from '../../graph/graph-store.js'
import { EMPTY_MAP, type MapState } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import {
  firstContentOf,
  isWhole,
  lastOf,
  latestContent,
  latestParent,
  outputAt,
  outputAtStep,
  placeOf,
} from './lineage-rows.js'
import { mergedMap } from './merged-map.js'
import type { SqlReader } from './sql-reader.js'

/** The last output of the lineage that an output stands in; undefined where the store does not hold the output. */
export async function lineageTip(reader: SqlReader, outpoint: Outpoint): Promise<Outpoint | undefined> {
  const place = await placeOf(reader, outpoint)
  return place && (await lastOf(reader, place.lineage))?.outpoint
}

/** See `OrdinalsReader.ordinalAt`. */
export async function ordinalAt(
  reader: SqlReader,
  outpoint: Outpoint,
  sequence: number,
): Promise<OrdinalStep | undefined> {
  const place = await placeOf(reader, outpoint)
  if (place === undefined) return undefined
  if (place.satoshis !== 1) return alone(await outputAt(reader, outpoint), sequence)
  const { lineage } = place
  if (!(await isWhole(reader, lineage))) return undefined
  const origin = await firstContentOf(reader, lineage)
  const last = await lastOf(reader, lineage)
  if (origin === undefined || last === undefined) return undefined
  const step = stepAt(sequence, { origin: origin.step, last: last.step })
  const output = await outputAtStep(reader, { lineage, step })
  const stretch = { lineage, from: origin.step, to: step }
  const content = await latestContent(reader, stretch)
  if (output === undefined || content === undefined) return undefined
  const parent = await latestParent(reader, stretch)
  return {
    output,
    sequence: step - origin.step,
    origin: origin.outpoint,
    content,
    ...(parent && { parent }),
    tip: step === last.step,
  }
}

function stepAt(sequence: number, { origin, last }: { origin: number; last: number }): number {
  if (sequence === TIP) return last
  return sequence === ORIGIN ? origin : origin + sequence
}

/** An output that is no ordinal is its own origin and tip. */
function alone(output: OutputRecord | undefined, sequence: number): OrdinalStep | undefined {
  if (output?.content === undefined || ![0, TIP, ORIGIN].includes(sequence)) return undefined
  const { outpoint, parent } = output
  return { output, sequence: 0, origin: outpoint, content: output, ...(parent && { parent }), tip: true }
}

/** The MAP of an ordinal up to an output, or of one that is no ordinal; see `MapReader.mergedMap`. */
export async function mapUpTo(
  reader: SqlReader,
  outpoint: Outpoint,
  limit?: number,
): Promise<MapState | undefined> {
  const place = await placeOf(reader, outpoint)
  const origin = place && (await firstContentOf(reader, place.lineage))
  if (place === undefined || origin === undefined) return EMPTY_MAP
  return await mergedMap(reader, {
    lineage: place.lineage,
    from: origin.step,
    to: place.step,
    ...(limit !== undefined && { limit }),
  })
}
