import type { Trait } from '../../graph/traits.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, outpointOf, outpointPair } from '../columns.js'
import { lineagesIn } from './lineage-rows.js'
import type { SqlReader, SqlValue } from './sql-reader.js'

/** Up to how many ordinals with a trait are counted to find the rarest one of several. */
const COUNTED = 1000

/** See `TraitsReader.tipsWith`. Lineages are walked in their order, along the trait that fewest of them have. */
export async function tipsWith(
  reader: SqlReader,
  { traits, limit, after }: { traits: Trait[]; limit: number; after?: Outpoint },
): Promise<Outpoint[]> {
  const lineages = lineagesIn(reader)
  const hashes = await rarestFirst(reader, [...new Set(traits.map(({ hash }) => hash))])
  const [first, ...others] = hashes.map(hashColumn)
  if (first === undefined) return []
  const conditions = others.map(
    () => `and exists (
      select 1 from graph_traits as other where other.trait = ?
      and other.lineage_txid = traits.lineage_txid and other.lineage_vout = traits.lineage_vout
    )`,
  )
  const values: SqlValue[] = [first, ...others]
  if (after !== undefined) {
    // Where the store does not hold it, there is a place for it all the same.
    const [txid, vout] = (await lineages.placeOf(after))?.lineage ?? outpointPair(after)
    conditions.push('and lineage_txid >= ? and (lineage_txid > ? or lineage_vout > ?)')
    values.push(txid, txid, vout)
  }
  const rows = await reader.all(
    `select lineage_txid, lineage_vout from graph_traits as traits where trait = ? ${conditions.join(' ')}
     order by lineage_txid, lineage_vout limit ?`,
    [...values, limit],
  )
  const tips: Outpoint[] = []
  for (const row of rows) {
    const lineage = outpointPair(outpointOf({ txid: row.lineage_txid, vout: row.lineage_vout }))
    const tip = await lineages.lastOf(lineage)
    if (tip !== undefined) tips.push(tip.outpoint)
  }
  return tips
}

async function rarestFirst(reader: SqlReader, hashes: string[]): Promise<string[]> {
  if (hashes.length < 2) return hashes
  const counted: { hash: string; count: number }[] = []
  for (const hash of hashes) {
    const row = await reader.first(
      'select count(*) as count from (select 1 from graph_traits where trait = ? limit ?) as found',
      [hashColumn(hash), COUNTED],
    )
    counted.push({ hash, count: Number(row.count) })
  }
  return counted.sort((a, b) => a.count - b.count).map(({ hash }) => hash)
}
