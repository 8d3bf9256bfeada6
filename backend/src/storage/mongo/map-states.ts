import { commandsFor, encodeMap } from '../../graph/map-coder.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import { outpointOf, outpointPair } from '../columns.js'
import { MapGrowth } from '../map-growth.js'
import { mapOwner, mergedMap } from '../merged-map.js'
import { rest } from '../rest.js'
import { outpointId } from './collections.js'
import type { Doc, Filter } from './documents.js'
import type { Change } from './lineage.js'
import { inLineage } from './lineage-reads.js'
import { mapsIn, unblocked } from './map-reads.js'
import type { PendingDocuments } from './pending-documents.js'
import { deletePieces, writePieces } from './piece-writes.js'

const PAGE = 100

/** Makes the merged MAP along lineages follow what has changed. */
export async function keepMapStates(pending: PendingDocuments, changes: Change[]): Promise<void> {
  for (const change of changes) await keepAlong(pending, change)
}

async function keepAlong(pending: PendingDocuments, { lineage, from }: Change): Promise<void> {
  const ofLineage = inLineage(outpointPair(lineage))
  const further = { ...ofLineage, map_step: { $gte: from } }
  if ((await pending.first('graph_outputs', further, { fields: ['step'] })) === undefined) return
  for (const doc of await pending.all('graph_outputs', { ...further, merged_length: { $ne: null } }))
    await drop(pending, doc)
  const start = await pending.first(
    'graph_outputs',
    { ...ofLineage, content_step: { $gte: 0 } },
    { sort: { content_step: 1 }, fields: ['content_step'] },
  )
  // What was said before there was content was not said of the ordinal.
  if (start === undefined) return
  const origin: number = start.content_step
  const growth = await growthBefore(pending, { ofLineage, origin, from })
  for (let next = Math.max(origin, from); ; ) {
    const docs = await mapDocs(
      pending,
      { ...ofLineage, map_step: { $gte: next } },
      { sort: { map_step: 1 }, limit: PAGE },
    )
    await rest()
    for (const doc of await unblocked(pending, docs)) {
      if (!growth.isDue(doc.map_length)) continue
      const stretch = { lineage: outpointPair(lineage), from: origin, to: doc.map_step }
      growth.keep(await keep(pending, doc, stretch))
    }
    const last = docs.at(-1)
    if (last === undefined || docs.length < PAGE) return
    next = last.map_step + 1
  }
}

/** How long the last merged MAP before a step is, and how much was said since. */
async function growthBefore(
  pending: PendingDocuments,
  { ofLineage, origin, from }: { ofLineage: Filter; origin: number; from: number },
): Promise<MapGrowth> {
  const earlier = { ...ofLineage, map_step: { $gte: origin, $lt: from } }
  const kept = await mapDocs(
    pending,
    { ...earlier, merged_length: { $ne: null } },
    { sort: { map_step: -1 } },
  )
  const [state] = await unblocked(pending, kept)
  const after = state === undefined ? origin : state.map_step + 1
  const since = await mapDocs(pending, { ...ofLineage, map_step: { $gte: after, $lt: from } })
  const lengths = (await unblocked(pending, since)).map(({ map_length }) => map_length)
  return new MapGrowth({ kept: state?.merged_length ?? 0, since: lengths })
}

async function mapDocs(
  pending: PendingDocuments,
  filter: Filter,
  options: { sort?: Record<string, 1 | -1>; limit?: number } = {},
): Promise<Doc[]> {
  const fields = ['txid', 'vout', 'map_step', 'map_length', 'merged_length']
  return await pending.all('graph_outputs', filter, { ...options, fields })
}

async function keep(
  pending: PendingDocuments,
  doc: Doc,
  stretch: Parameters<typeof mergedMap>[1],
): Promise<number> {
  const bytes = encodeMap(commandsFor((await mergedMap(mapsIn(pending), stretch)) ?? EMPTY_MAP))
  const outpoint = outpointOf(doc)
  await writePieces(pending, [{ owner: mapOwner({ outpoint, merged: true }), bytes }])
  await pending.update('graph_outputs', { _id: outpointId(outpoint) }, { merged_length: bytes.length })
  return bytes.length
}

async function drop(pending: PendingDocuments, doc: Doc): Promise<void> {
  const outpoint = outpointOf(doc)
  await deletePieces(pending, mapOwner({ outpoint, merged: true }))
  await pending.update('graph_outputs', { _id: outpointId(outpoint) }, { merged_length: null })
}
