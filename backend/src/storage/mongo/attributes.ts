import type { Attribute } from '../../graph/attributes.js'
import type { AttributesReader } from '../../graph/graph-store.js'
import { Slices } from '../../graph/yield-to-event-loop.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lineage } from '../read/lineages.js'
import { hashColumn, outpointPair, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { attributeId } from './collections.js'
import type { Documents, Filter } from './documents.js'
import { lineagesIn } from './lineages.js'

const TRAITS = 'graph_traits'
const LINEAGE = ['lineage_txid', 'lineage_vout']

/** How many lineages with one trait are looked at for others at once, where they are to have several. */
const PAGE = 200
/** Up to how many ordinals with a trait are counted to find the rarest one of several. */
const COUNTED = 1000

/** What ordinals are found by in a store. */
export function attributesIn(documents: Documents): AttributesReader {
  return { tipsWith: (query) => tipsWith(documents, query) }
}

/** See `AttributesReader.tipsWith`. Lineages are walked in their order, along the trait that fewest of them have. */
async function tipsWith(
  documents: Documents,
  { attributes, limit, after }: { attributes: Attribute[]; limit: number; after?: Outpoint },
): Promise<Outpoint[]> {
  const { placeOf, lastOf } = lineagesIn(documents)
  const hashes = [...new Set(attributes.map(({ hash }) => hash))].map(hashColumn)
  const [first, ...others] = await rarestFirst(documents, hashes)
  if (first === undefined) return []
  // Where the store does not hold it, there is a place for it all the same.
  const from = after && ((await placeOf(after))?.lineage ?? outpointPair(after))
  const found: Lineage[] = []
  for await (const page of lineagesWith(documents, {
    trait: first,
    from,
    limit: others.length === 0 ? limit : PAGE,
  })) {
    found.push(...(await havingAll(documents, others, page)))
    if (found.length >= limit) break
  }
  const tips = await Promise.all(found.slice(0, limit).map(lastOf))
  return tips.flatMap((tip) => (tip === undefined ? [] : [tip.outpoint]))
}

/** The lineages with a trait from behind one on, in their order, a page at a time. */
async function* lineagesWith(
  documents: Documents,
  { trait, from, limit }: { trait: Buffer; from: Lineage | undefined; limit: number },
): AsyncGenerator<Lineage[]> {
  const slices = new Slices()
  for (let last = from; ; ) {
    const docs = await documents.all(
      TRAITS,
      { trait, ...(last && behind(last)) },
      { sort: { lineage_txid: 1, lineage_vout: 1 }, limit, fields: LINEAGE },
    )
    const page = docs.map((doc): Lineage => [doc.lineage_txid, doc.lineage_vout])
    yield page
    last = page.at(-1)
    if (last === undefined || page.length < limit) return
    await slices.rest()
  }
}

function behind([txid, vout]: Lineage): Filter {
  return {
    lineage_txid: { $gte: txid },
    $or: [{ lineage_txid: { $gt: txid } }, { lineage_vout: { $gt: vout } }],
  }
}

/** Those of the lineages that have all of the traits. */
async function havingAll(
  documents: Documents,
  attributes: Buffer[],
  lineages: Lineage[],
): Promise<Lineage[]> {
  let left = lineages
  for (const trait of attributes) {
    const having: Lineage[] = []
    for (const part of parts(left, ROWS_A_STATEMENT)) {
      const ids = part.map((lineage) => attributeId(trait, lineage))
      const docs = await documents.all(TRAITS, { _id: { $in: ids } }, { fields: LINEAGE })
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

async function rarestFirst(documents: Documents, attributes: Buffer[]): Promise<Buffer[]> {
  if (attributes.length < 2) return attributes
  const counted: { trait: Buffer; count: number }[] = []
  for (const trait of attributes) {
    const docs = await documents.all(TRAITS, { trait }, { limit: COUNTED, fields: ['kind'] })
    counted.push({ trait, count: docs.length })
  }
  return counted.sort((a, b) => a.count - b.count).map(({ trait }) => trait)
}
