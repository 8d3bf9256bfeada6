import { EMPTY_MAP } from '../graph/map-merge.js'
import { mapTraits, type Trait, trait } from '../graph/traits.js'
import type { Lineage, Lineages } from './lineages.js'
import { type Maps, mergedMap } from './merged-map.js'

/** What an ordinal whose origin is known says of itself where it stands now, at a step of its lineage. */
export async function saidTraits(store: Lineages & Maps, lineage: Lineage, to: number): Promise<Trait[]> {
  const origin = await store.firstContentOf(lineage)
  if (origin === undefined || !(await store.isWhole(lineage))) return []
  const stretch = { lineage, from: origin.step, to }
  const content = (await store.latestContent(stretch))?.content
  const parent = await store.latestParent(stretch)
  const map = await mergedMap(store, stretch)
  return [
    ...(content ? [trait.contentType(content.contentType)] : []),
    ...(parent ? [trait.parent(parent)] : []),
    ...mapTraits(map ?? EMPTY_MAP),
  ]
}
