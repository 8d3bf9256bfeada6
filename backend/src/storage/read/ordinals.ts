import {
  type MetadataReader,
  ORIGIN,
  type OrdinalStep,
  type OrdinalsReader,
  TIP,
} from '../../graph/graph-store.js'
import { EMPTY_MAP, type MapState, mergeMap } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn } from '../rows/columns.js'
import { OUTPUT, outputOf } from '../rows/record-rows.js'
import type { RowReader } from '../rows/rows.js'
import type { Lineages } from './lineages.js'
import type { LineageSummary, Lookups } from './lookups.js'
import { mergedMap, readMap } from './read-map.js'

/** The ordinals of a store. */
export function ordinalsIn(
  rows: RowReader,
  lineages: Lineages,
  { spenderOf }: Pick<Lookups, 'spenderOf'>,
): OrdinalsReader {
  return {
    async firstContentOutput(txid) {
      const inscribed = { txid: hashColumn(txid), content_sha256: { $ne: null } }
      const row = await rows.first('graph_outputs', inscribed, { sort: { vout: 1 }, fields: OUTPUT })
      return row && outputOf(row)
    },
    output: (outpoint) => admittedOutput(lineages, outpoint),
    async currentOutput(outpoint) {
      // A host that runs no `tm_ordinals` knows only the origins of names.
      const tip = (await lineageTip(lineages, outpoint)) ?? outpoint
      return (await spenderOf(tip)) === undefined ? tip : undefined
    },
    at: (outpoint, sequence) => ordinalAt(lineages, outpoint, sequence),
    lineage: (outpoint) => walkLineage(lineages, outpoint),
  }
}

/** The MAP metadata of a store. */
export function metadataIn(rows: Lineages): MetadataReader {
  return {
    async own(outpoint) {
      const output = await admittedOutput(rows, outpoint)
      if (output?.mapLength === undefined) return EMPTY_MAP
      return mergeMap(EMPTY_MAP, await readMap(rows, { outpoint, merged: false, length: output.mapLength }))
    },
    merged: (outpoint, limit) => mapUpTo(rows, outpoint, limit),
  }
}

async function admittedOutput(lineages: Lineages, outpoint: Outpoint): Promise<OutputRecord | undefined> {
  const output = await lineages.outputAt(outpoint)
  return output?.carrier ? undefined : output
}

/** The last output of an output's lineage; undefined if the store does not hold the output. */
async function lineageTip(lineages: Lineages, outpoint: Outpoint): Promise<Outpoint | undefined> {
  const place = await lineages.placeOf(outpoint)
  // A coin in front of an ordinal is part of no answer.
  return place === undefined || place.isCarrier ? undefined : (await lineages.lastOf(place.lineage))?.outpoint
}

/** See `OrdinalsReader.at`. */
async function ordinalAt(
  lineages: Lineages,
  outpoint: Outpoint,
  sequence: number,
): Promise<OrdinalStep | undefined> {
  const summary = await lineages.summaryOf(outpoint)
  if (summary === undefined || summary.isCarrier) return undefined
  if (summary.satoshis !== 1) return singleStep(await lineages.outputAt(outpoint), sequence)
  const { lineage, isComplete, origin, last } = summary
  if (!isComplete || origin === undefined) return undefined
  const step = stepAt(sequence, { origin, last })
  if (step < origin || step > last) return undefined
  const stretch = { lineage, from: origin, to: step }
  const isIn = (at: number | undefined): at is number => at !== undefined && at >= origin && at <= step
  // Most reads ask for the tip. The summary does not show the latest content or parent before an earlier step.
  const content = isIn(summary.content) ? summary.content : undefined
  const parent = isIn(summary.parent) ? summary.parent : undefined
  const isBeforeParent = summary.parent !== undefined && summary.parent > step
  // In parallel: if the database is another process, each is a round trip.
  const [outputs, earlierContent, earlierParent] = await Promise.all([
    outputsOf(lineages, summary, [origin, step, content, parent]),
    content === undefined ? lineages.latestContent(stretch) : undefined,
    isBeforeParent ? lineages.latestParent(stretch) : undefined,
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

/** The outputs at some steps: those that came with the summary, and the others looked up. */
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
function singleStep(output: OutputRecord | undefined, sequence: number): OrdinalStep | undefined {
  if (output?.content === undefined || ![0, TIP, ORIGIN].includes(sequence)) return undefined
  const { outpoint, parent } = output
  return { output, sequence: 0, origin: outpoint, content: output, ...(parent && { parent }), tip: true }
}

/** See `MetadataReader.merged`. */
async function mapUpTo(rows: Lineages, outpoint: Outpoint, limit?: number): Promise<MapState | undefined> {
  const summary = await rows.summaryOf(outpoint)
  if (summary?.origin === undefined || !summary.isComplete) return EMPTY_MAP
  const { lineage, origin, step, maps } = summary
  return await mergedMap(rows, {
    lineage,
    from: origin,
    to: step,
    ...(maps && { maps }),
    ...(limit !== undefined && { limit }),
  })
}

/** A lineage may have any number of steps: no more than this are in memory at once. */
const STEPS_A_PAGE = 1000

/** See `OrdinalsReader.lineage`. */
async function* walkLineage(lineages: Lineages, outpoint: Outpoint): AsyncGenerator<Outpoint> {
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
