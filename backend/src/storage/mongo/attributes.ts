import type { Attribute } from '../../graph/attributes.js'
import type { AttributesReader } from '../../graph/graph-store.js'
import { TimeSlice } from '../../graph/yield-to-event-loop.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, type Lineage, outpointPair, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { attributeId } from './collections.js'
import type { Documents, Filter } from './documents.js'
import { lineagesIn } from './lineages.js'

const ATTRIBUTES = 'graph_traits'
const LINEAGE = ['lineage_txid', 'lineage_vout']

/** How many lineages with the rarest attribute are checked for the others at once. */
const PAGE = 200
/** Up to how many ordinals are counted per attribute to find the rarest. */
const COUNTED = 1000

/** The attributes of a store. */
export function attributesIn(documents: Documents): AttributesReader {
  return { tipsWith: (query) => tipsWith(documents, query) }
}

/** See `AttributesReader.tipsWith`. Walks the lineages with the rarest attribute, in their order. */
async function tipsWith(
  documents: Documents,
  { attributes, limit, after }: { attributes: Attribute[]; limit: number; after?: Outpoint },
): Promise<Outpoint[]> {
  const { placeOf, lastOf } = lineagesIn(documents)
  const hashes = [...new Set(attributes.map(({ hash }) => hash))].map(hashColumn)
  const [first, ...others] = await rarestFirst(documents, hashes)
  if (first === undefined) return []
  // It has a place in that order even if the store does not hold it.
  const from = after && ((await placeOf(after))?.lineage ?? outpointPair(after))
  const found: Lineage[] = []
  for await (const page of lineagesWith(documents, {
    hash: first,
    from,
    limit: others.length === 0 ? limit : PAGE,
  })) {
    found.push(...(await havingAll(documents, others, page)))
    if (found.length >= limit) break
  }
  const tips = await Promise.all(found.slice(0, limit).map(lastOf))
  return tips.flatMap((tip) => (tip === undefined ? [] : [tip.outpoint]))
}

/** The lineages with an attribute, after `from`, in order, a page at a time. */
async function* lineagesWith(
  documents: Documents,
  { hash, from, limit }: { hash: Buffer; from: Lineage | undefined; limit: number },
): AsyncGenerator<Lineage[]> {
  const slice = new TimeSlice()
  for (let last = from; ; ) {
    const docs = await documents.all(
      ATTRIBUTES,
      { trait: hash, ...(last && after(last)) },
      { sort: { lineage_txid: 1, lineage_vout: 1 }, limit, fields: LINEAGE },
    )
    const page = docs.map((doc): Lineage => [doc.lineage_txid, doc.lineage_vout])
    yield page
    last = page.at(-1)
    if (last === undefined || page.length < limit) return
    await slice.yieldIfOver()
  }
}

function after([txid, vout]: Lineage): Filter {
  return {
    lineage_txid: { $gte: txid },
    $or: [{ lineage_txid: { $gt: txid } }, { lineage_vout: { $gt: vout } }],
  }
}

/** Those of the lineages that have all of the attributes. */
async function havingAll(documents: Documents, hashes: Buffer[], lineages: Lineage[]): Promise<Lineage[]> {
  let left = lineages
  for (const hash of hashes) {
    const having: Lineage[] = []
    for (const part of parts(left, ROWS_A_STATEMENT)) {
      const ids = part.map((lineage) => attributeId(hash, lineage))
      const docs = await documents.all(ATTRIBUTES, { _id: { $in: ids } }, { fields: LINEAGE })
      const found = new Set(docs.map((doc) => keyOf([doc.lineage_txid, doc.lineage_vout])))
      having.push(...part.filter((lineage) => found.has(keyOf(lineage))))
    }
    left = having
  }
  return left
}

function keyOf([txid, vout]: Lineage): string {
  return `${txid.toString('hex')} ${vout}`
}

async function rarestFirst(documents: Documents, hashes: Buffer[]): Promise<Buffer[]> {
  if (hashes.length < 2) return hashes
  const counted: { hash: Buffer; count: number }[] = []
  for (const hash of hashes) {
    const docs = await documents.all(ATTRIBUTES, { trait: hash }, { limit: COUNTED, fields: ['kind'] })
    counted.push({ hash, count: docs.length })
  }
  return counted.sort((a, b) => a.count - b.count).map(({ hash }) => hash)
}
