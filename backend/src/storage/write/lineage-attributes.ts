import { type Attribute, attribute, mapAttributes } from '../../graph/attributes.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import type { Lineage, Lineages } from '../read/lineages.js'
import { type Maps, mergedMap } from '../read/read-map.js'

/** What an ordinal whose origin is known says of itself where it stands now, at a step of its lineage. */
export async function lineageAttributes(
  store: Lineages & Maps,
  lineage: Lineage,
  to: number,
): Promise<Attribute[]> {
  const origin = await store.firstContentOf(lineage)
  if (origin === undefined || !(await store.isWhole(lineage))) return []
  const stretch = { lineage, from: origin.step, to }
  const content = (await store.latestContent(stretch))?.content
  const parent = await store.latestParent(stretch)
  const map = await mergedMap(store, stretch)
  return [
    ...(content ? [attribute.contentType(content.contentType)] : []),
    ...(parent ? [attribute.parent(parent)] : []),
    ...mapAttributes(map ?? EMPTY_MAP),
  ]
}
