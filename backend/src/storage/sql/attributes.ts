import type { Attribute } from '../../graph/attributes.js'
import type { AttributesReader } from '../../graph/graph-store.js'
import { TimeSlice } from '../../graph/yield-to-event-loop.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, type Lineage, outpointOf, outpointPair } from '../rows/columns.js'
import type { SqlReader, SqlValue } from './database.js'
import { lineagesIn } from './lineages.js'

/** Up to how many ordinals are counted per attribute to find the rarest. */
const COUNTED = 1000

/** How many lineages with the rarest attribute are checked for the others at once. */
const PAGE = 200

/** The attributes of a store. */
export function attributesIn(reader: SqlReader): AttributesReader {
  return { tipsWith: (query) => tipsWith(reader, query) }
}

/** See `AttributesReader.tipsWith`. Walks the lineages with the rarest attribute, in their order. */
async function tipsWith(
  reader: SqlReader,
  { attributes, limit, after }: { attributes: Attribute[]; limit: number; after?: Outpoint },
): Promise<Outpoint[]> {
  const lineages = lineagesIn(reader)
  const hashes = await rarestFirst(reader, [...new Set(attributes.map(({ hash }) => hash))])
  if (hashes.length === 0) return []
  // It has a place in that order even if the store does not hold it.
  const from = after && ((await lineages.placeOf(after))?.lineage ?? outpointPair(after))
  const tips: Outpoint[] = []
  for await (const lineage of lineagesWith(reader, { attributes: hashes.map(hashColumn), from, limit })) {
    const tip = await lineages.lastOf(lineage)
    if (tip !== undefined) tips.push(tip.outpoint)
  }
  return tips
}

/**
 * At most `limit` lineages with all of the attributes, after `from`, in order. Yields between pages: strangers decide how
 * many lineages have the first attribute and lack another.
 */
async function* lineagesWith(
  reader: SqlReader,
  { attributes, from, limit }: { attributes: Buffer[]; from: Lineage | undefined; limit: number },
): AsyncGenerator<Lineage> {
  const [first, ...others] = attributes
  if (first === undefined) return
  const isMatch = others.length === 0 ? '1' : others.map(() => HAS_OTHER).join(' and ')
  const pageOf = async (behind: string, values: SqlValue[], rows: number): Promise<AttributeRow[]> =>
    await reader.all(
      `select lineage_txid, lineage_vout, ${isMatch} as matches from graph_traits as traits
       where trait = ? ${behind} order by lineage_txid, lineage_vout limit ?`,
      [...others, first, ...values, rows],
    )
  const size = others.length === 0 ? limit : PAGE
  const slice = new TimeSlice()
  let found = 0
  for (let last = from; found < limit; ) {
    // The remaining lineages of the same transaction, then those after it: each is one range of the key.
    const rows =
      last === undefined
        ? await pageOf('', [], size)
        : await pageOf('and lineage_txid = ? and lineage_vout > ?', last, size)
    if (last !== undefined && rows.length < size)
      rows.push(...(await pageOf('and lineage_txid > ?', [last[0]], size - rows.length)))
    for (const row of rows) {
      last = outpointPair(outpointOf({ txid: row.lineage_txid, vout: row.lineage_vout }))
      if (Number(row.matches) !== 1) continue
      yield last
      if (++found === limit) return
    }
    if (rows.length < size) return
    await slice.yieldIfOver()
  }
}

interface AttributeRow {
  lineage_txid: unknown
  lineage_vout: unknown
  matches: unknown
}

const HAS_OTHER = `exists (
  select 1 from graph_traits as other where other.trait = ?
  and other.lineage_txid = traits.lineage_txid and other.lineage_vout = traits.lineage_vout
)`

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
