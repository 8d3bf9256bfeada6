import type { AttributesReader } from '../../graph/graph-store.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, isComplete, type Lineage, outpointOf, outpointPair } from '../rows/columns.js'
import type { RowReader } from '../rows/rows.js'
import type { Lineages } from './lineages.js'
import type { Lookups } from './lookups.js'

/** Up to how many ordinals are counted per attribute to find the rarest. */
const COUNTED = 1000

/** The attributes of a store. Walks the lineages with the rarest attribute, in the order of their first outputs. */
export function attributesIn(
  rows: RowReader,
  lineages: Lineages,
  { lineagesWith }: Pick<Lookups, 'lineagesWith'>,
): AttributesReader {
  return {
    async tipsWith(query) {
      const found = await firstsWith({ rows, lineages, lineagesWith }, query)
      const tips = await Promise.all(found.map((first) => tipFrom(lineages, first)))
      return tips.flatMap((tip) => tip ?? [])
    },
  }
}

/** The first outputs of the lineages with all of the attributes, as `AttributesReader.tipsWith` lists their tips. */
export async function firstsWith(
  { rows, lineages, lineagesWith }: { rows: RowReader; lineages: Lineages } & Pick<Lookups, 'lineagesWith'>,
  { attributes, limit, after }: Parameters<AttributesReader['tipsWith']>[0],
): Promise<Lineage[]> {
  const distinct = [...new Set(attributes.map(({ hash }) => hash))]
  const hashes = await rarestFirst(rows, distinct.map(hashColumn))
  if (hashes.length === 0) return []
  const from = after && (await firstBefore(lineages, after))
  const found: Lineage[] = []
  for await (const lineage of lineagesWith({ hashes, from, limit })) found.push(lineage)
  return found
}

/** The first output of an output's lineage. It has a place in the order even if the store does not hold it. */
async function firstBefore(lineages: Lineages, outpoint: Outpoint): Promise<Lineage> {
  const lineage = (await lineages.placeOf(outpoint))?.lineage
  if (lineage === undefined) return outpointPair(outpoint)
  if (isComplete(lineage)) return lineage
  return outpointPair((await lineages.firstOf(lineage))?.outpoint ?? outpoint)
}

/** The last output of the lineage that starts with an output. */
async function tipFrom(lineages: Lineages, [txid, vout]: Lineage): Promise<Outpoint | undefined> {
  const tip = await lineages.lastOf([txid, vout])
  if (tip !== undefined) return tip.outpoint
  const place = await lineages.placeOf(outpointOf({ txid, vout }))
  return place && (await lineages.lastOf(place.lineage))?.outpoint
}

async function rarestFirst(rows: RowReader, hashes: Buffer[]): Promise<Buffer[]> {
  if (hashes.length < 2) return hashes
  const counted: { hash: Buffer; count: number }[] = []
  for (const hash of hashes)
    counted.push({ hash, count: await rows.count('graph_traits', { trait: hash }, COUNTED) })
  return counted.sort((a, b) => a.count - b.count).map(({ hash }) => hash)
}
