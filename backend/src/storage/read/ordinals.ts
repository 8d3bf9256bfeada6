import {
  type MetadataReader,
  ORIGIN,
  type OrdinalStep,
  type OrdinalsReader,
  TIP,
  type TransactionsReader,
} from '../../graph/graph-store.js'
import { EMPTY_MAP, type MapState, mergeMap } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { LineageSummary, Lineages } from './lineages.js'
import { type Maps, mergedMap, readMap } from './read-map.js'

/** The ordinals of a store, on any engine. */
export function ordinalsIn(
  rows: Lineages,
  {
    firstContentOutput,
    spenderOf,
  }: Pick<OrdinalsReader, 'firstContentOutput'> & Pick<TransactionsReader, 'spenderOf'>,
): OrdinalsReader {
  return {
    firstContentOutput,
    output: (outpoint) => outputOf(rows, outpoint),
    async currentOutput(outpoint) {
      // A host that runs no `tm_ordinals` knows the origins of names alone.
      const tip = (await lineageTip(rows, outpoint)) ?? outpoint
      return (await spenderOf(tip)) === undefined ? tip : undefined
    },
    at: (outpoint, sequence) => ordinalAt(rows, outpoint, sequence),
    lineage: (outpoint) => lineageOf(rows, outpoint),
  }
}

/** The MAP metadata of a store, on any engine. */
export function metadataIn(rows: Lineages & Maps): MetadataReader {
  return {
    async own(outpoint) {
      const output = await outputOf(rows, outpoint)
      if (output?.mapLength === undefined) return EMPTY_MAP
      return mergeMap(EMPTY_MAP, await readMap(rows, { outpoint, merged: false, length: output.mapLength }))
    },
    merged: (outpoint, limit) => mapUpTo(rows, outpoint, limit),
  }
}

async function outputOf(rows: Lineages, outpoint: Outpoint): Promise<OutputRecord | undefined> {
  const output = await rows.outputAt(outpoint)
  return output?.carrier ? undefined : output
}

/** The last output of the lineage that an output stands in; undefined where the store does not hold the output. */
export async function lineageTip(lineages: Lineages, outpoint: Outpoint): Promise<Outpoint | undefined> {
  const place = await lineages.placeOf(outpoint)
  // A coin in front of an ordinal is part of no answer.
  return place === undefined || place.isCarrier ? undefined : (await lineages.lastOf(place.lineage))?.outpoint
}

/** See `OrdinalsReader.at`. */
export async function ordinalAt(
  lineages: Lineages,
  outpoint: Outpoint,
  sequence: number,
): Promise<OrdinalStep | undefined> {
  const course = await lineages.summaryOf(outpoint)
  if (course === undefined || course.isCarrier) return undefined
  if (course.satoshis !== 1) return alone(await lineages.outputAt(outpoint), sequence)
  const { lineage, isWhole, origin, last } = course
  if (!isWhole || origin === undefined) return undefined
  const step = stepAt(sequence, { origin, last })
  if (step < origin || step > last) return undefined
  const stretch = { lineage, from: origin, to: step }
  const isIn = (at: number | undefined): at is number => at !== undefined && at >= origin && at <= step
  // Most are asked for where they stand now. Further back, what came last before a step is not said by the course.
  const content = isIn(course.content) ? course.content : undefined
  const parent = isIn(course.parent) ? course.parent : undefined
  const isBefore = course.parent !== undefined && course.parent > step
  // Side by side: where the database is another process, each takes a way there and back.
  const [outputs, earlierContent, earlierParent] = await Promise.all([
    outputsOf(lineages, course, [origin, step, content, parent]),
    content === undefined ? lineages.latestContent(stretch) : undefined,
    isBefore ? lineages.latestParent(stretch) : undefined,
  ])
  const output = outputs.get(step)
  const first = outputs.get(origin)
  const shown = content === undefined ? earlierContent : outputs.get(content)
  const named = parent === undefined ? earlierParent : outputs.get(parent)?.parent
  if (output === undefined || first === undefined || shown === undefined) return undefined
  return {
    output,
    sequence: step - origin,
    origin: first.outpoint,
    content: shown,
    ...(named && { parent: named }),
    tip: step === last,
  }
}

/** The outputs at some steps: those that came with the course, and the others. */
async function outputsOf(
  lineages: Lineages,
  { lineage, outputs }: LineageSummary,
  wanted: (number | undefined)[],
): Promise<ReadonlyMap<number, OutputRecord>> {
  const steps = [...new Set(wanted)].filter((step) => step !== undefined)
  const missing = steps.filter((step) => !outputs?.has(step))
  if (missing.length === 0 && outputs !== undefined) return outputs
  return new Map([...(outputs ?? []), ...(await lineages.outputsAt({ lineage, steps: missing }))])
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

/** The MAP of an ordinal up to an output, or of one that is no ordinal; see `MetadataReader.merged`. */
export async function mapUpTo(
  store: Lineages & Maps,
  outpoint: Outpoint,
  limit?: number,
): Promise<MapState | undefined> {
  const course = await store.summaryOf(outpoint)
  if (course?.origin === undefined) return EMPTY_MAP
  const { lineage, origin, step, maps } = course
  return await mergedMap(store, {
    lineage,
    from: origin,
    to: step,
    ...(maps && { maps }),
    ...(limit !== undefined && { limit }),
  })
}

/** A lineage may have any number of steps: no more of them are held at once. */
const STEPS_A_PAGE = 1000

/** See `OrdinalsReader.lineage`. */
export async function* lineageOf(lineages: Lineages, outpoint: Outpoint): AsyncGenerator<Outpoint> {
  const tip = (await ordinalAt(lineages, outpoint, TIP))?.output
  if (tip === undefined) return
  if (tip.satoshis !== 1) {
    yield tip.outpoint
    return
  }
  const place = await lineages.placeOf(outpoint)
  if (place === undefined) return
  for (let step = 0; ; ) {
    const page = await lineages.stepsFrom({ lineage: place.lineage, step, limit: STEPS_A_PAGE })
    yield* page.map((each) => each.outpoint)
    const last = page.at(-1)
    if (last === undefined || page.length < STEPS_A_PAGE) return
    step = last.step + 1
  }
}
