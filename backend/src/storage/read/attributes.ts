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
      const distinct = [...new Set(attributes.map(({ hash }) => hash))]
      const hashes = await rarestFirst(rows, distinct.map(hashColumn))
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

async function rarestFirst(rows: RowReader, hashes: Buffer[]): Promise<Buffer[]> {
  if (hashes.length < 2) return hashes
  const counted: { hash: Buffer; count: number }[] = []
  for (const hash of hashes)
    counted.push({ hash, count: await rows.count('graph_traits', { trait: hash }, COUNTED) })
  return counted.sort((a, b) => a.count - b.count).map(({ hash }) => hash)
}
