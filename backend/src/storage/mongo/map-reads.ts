import { formatOutpoint } from '../../protocol/outpoint.js'
import { outpointOf } from '../columns.js'
import type { MapPart, Maps } from '../merged-map.js'
import { anyOutpoint, type Doc, type Documents, inLineage } from './documents.js'
import { piecesIn } from './piece-reads.js'

/** Of an output: what its MAP is found by. */
export const MAP_FIELDS = ['map_step', 'map_length', 'merged_length']

/** The MAP of a database. */
export function mapsIn(documents: Documents): Maps {
  return {
    ...piecesIn(documents),
    async latestMaps({ lineage, from, to, limit }) {
      const docs = await documents.all(
        'graph_outputs',
        { ...inLineage(lineage), map_step: { $gte: from, $lte: to } },
        { sort: { map_step: -1 }, limit, fields: ['txid', 'vout', ...MAP_FIELDS] },
      )
      const last = docs.length < limit ? undefined : docs.at(-1)
      return { parts: await mapParts(documents, docs), next: last && last.map_step - 1 }
    },
  }
}

/** What some outputs with MAP say, those left out that are blocked. */
export async function mapParts(documents: Documents, outputs: Doc[]): Promise<MapPart[]> {
  return (await unblocked(documents, outputs)).map((doc) => {
    const merged = typeof doc.merged_length === 'number'
    return { outpoint: outpointOf(doc), merged, length: merged ? doc.merged_length : doc.map_length }
  })
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
