import { formatOutpoint } from '../../protocol/outpoint.js'
import { type Maps, mapPart } from '../read/read-map.js'
import { outpointOf } from '../rows/columns.js'
import { chunksIn } from './blob-chunks.js'
import { anyOutpoint, type Doc, type Documents, inLineage } from './documents.js'

/** The MAP of a database. */
export function mapsIn(documents: Documents): Maps {
  return {
    ...chunksIn(documents),
    async latestMaps({ lineage, from, to, limit }) {
      const docs = await documents.all(
        'graph_outputs',
        { ...inLineage(lineage), map_step: { $gte: from, $lte: to } },
        {
          sort: { map_step: -1 },
          limit,
          fields: ['txid', 'vout', 'map_step', 'map_length', 'merged_length'],
        },
      )
      const last = docs.length < limit ? undefined : docs.at(-1)
      return { parts: (await unblocked(documents, docs)).map(mapPart), next: last && last.map_step - 1 }
    },
  }
}

/** Those of some outputs that are not blocked. */
export async function unblocked(documents: Documents, outputs: Doc[]): Promise<Doc[]> {
  if (outputs.length === 0) return []
  const found = await documents.all('graph_blocked', anyOutpoint(outputs.map(outpointOf)), {
    fields: ['txid', 'vout'],
  })
  const blocked = new Set(found.map((doc) => formatOutpoint(outpointOf(doc))))
  return outputs.filter((output) => !blocked.has(formatOutpoint(outpointOf(output))))
}
