import { ORIGIN, type OrdinalStep, TIP } from '../graph/graph-store.js'
import { EMPTY_MAP, type MapState } from '../graph/map-merge.js'
import type { OutputRecord } from '../graph/records.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { Lineages } from './lineages.js'
import { type Maps, mergedMap } from './merged-map.js'

/** The last output of the lineage that an output stands in; undefined where the store does not hold the output. */
export async function lineageTip(lineages: Lineages, outpoint: Outpoint): Promise<Outpoint | undefined> {
  const place = await lineages.placeOf(outpoint)
  return place && (await lineages.lastOf(place.lineage))?.outpoint
}

/** See `OrdinalsReader.ordinalAt`. */
export async function ordinalAt(
  lineages: Lineages,
  outpoint: Outpoint,
  sequence: number,
): Promise<OrdinalStep | undefined> {
  const place = await lineages.placeOf(outpoint)
  if (place === undefined) return undefined
  if (place.satoshis !== 1) return alone(await lineages.outputAt(outpoint), sequence)
  const { lineage } = place
  // Side by side: where the database is another process, each takes a way there and back.
  const [isWhole, origin, last] = await Promise.all([
    lineages.isWhole(lineage),
    lineages.firstContentOf(lineage),
    lineages.lastOf(lineage),
  ])
  if (!isWhole || origin === undefined || last === undefined) return undefined
  const step = stepAt(sequence, { origin: origin.step, last: last.step })
  const stretch = { lineage, from: origin.step, to: step }
  const [output, content, parent] = await Promise.all([
    lineages.outputAtStep({ lineage, step }),
    lineages.latestContent(stretch),
    lineages.latestParent(stretch),
  ])
  if (output === undefined || content === undefined) return undefined
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
  store: Lineages & Maps,
  outpoint: Outpoint,
  limit?: number,
): Promise<MapState | undefined> {
  const place = await store.placeOf(outpoint)
  const origin = place && (await store.firstContentOf(place.lineage))
  if (place === undefined || origin === undefined) return EMPTY_MAP
  return await mergedMap(store, {
    lineage: place.lineage,
    from: origin.step,
    to: place.step,
    ...(limit !== undefined && { limit }),
  })
}
