import type { AttributesReader } from '../../graph/graph-store.js'
import { hashColumn, type Lineage, outpointPair } from '../rows/columns.js'
import type { RowReader } from '../rows/rows.js'
import type { Lineages } from './lineages.js'
import type { Lookups } from './lookups.js'

/** Up to how many ordinals are counted per attribute to find the rarest. */
const COUNTED = 1000

/** The attributes of a store. Walks the lineages with the rarest attribute, in their order. */
export function attributesIn(
  rows: RowReader,
  lineages: Lineages,
  { lineagesWith }: Pick<Lookups, 'lineagesWith'>,
): AttributesReader {
  return {
    async tipsWith({ attributes, limit, after }) {
      const hashes = await rarestFirst(rows, [...new Set(attributes.map(({ hash }) => hash))])
      if (hashes.length === 0) return []
      // It has a place in that order even if the store does not hold it.
      const from = after && ((await lineages.placeOf(after))?.lineage ?? outpointPair(after))
      const found: Lineage[] = []
      for await (const lineage of lineagesWith({ hashes, from, limit })) found.push(lineage)
      const tips = await Promise.all(found.map((lineage) => lineages.lastOf(lineage)))
      return tips.flatMap((tip) => tip?.outpoint ?? [])
    },
  }
}

async function rarestFirst(rows: RowReader, hashes: string[]): Promise<Buffer[]> {
  const traits = hashes.map(hashColumn)
  if (traits.length < 2) return traits
  const counted: { trait: Buffer; count: number }[] = []
  for (const trait of traits)
    counted.push({ trait, count: await rows.count('graph_traits', { trait }, COUNTED) })
  return counted.sort((a, b) => a.count - b.count).map(({ trait }) => trait)
}
