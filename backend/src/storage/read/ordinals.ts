import type { MetadataReader, OrdinalsReader, TransactionsReader } from '../../graph/graph-store.js'
import { EMPTY_MAP, mergeMap } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lineages } from './lineages.js'
import { lineageTip, mapUpTo, ordinalAt } from './ordinal-at.js'
import { type Maps, readMap } from './read-map.js'
import { lineageOf } from './walk-lineage.js'

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
