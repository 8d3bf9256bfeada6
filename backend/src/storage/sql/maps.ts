import { formatOutpoint } from '../../protocol/outpoint.js'
import { type Maps, mapPart } from '../read/read-map.js'
import { type OutpointRow, outpointOf } from '../rows/columns.js'
import { chunksIn } from './blob-chunks.js'
import { anyOutpoint, outpointValues, type SqlReader } from './reader.js'

/** Of `graph_outputs`: what an output says that is blocked, is not said of the ordinal further on either. */
export const UNBLOCKED = `not exists (
  select 1 from graph_blocked as blocked where blocked.txid = graph_outputs.txid and blocked.vout = graph_outputs.vout
)`

interface MapRow extends OutpointRow {
  map_step: unknown
  map_length: unknown
  merged_length: unknown
}

/** The MAP of a database. */
export function mapsIn(reader: SqlReader): Maps {
  return {
    ...chunksIn(reader),
    async latestMaps({ lineage, from, to, limit }) {
      const rows: MapRow[] = await reader.all(
        `select txid, vout, map_step, map_length, merged_length from graph_outputs
         where lineage_txid = ? and lineage_vout = ? and map_step between ? and ? and ${UNBLOCKED}
         order by map_step desc limit ?`,
        [...lineage, from, to, limit],
      )
      const last = rows.length < limit ? undefined : rows.at(-1)
      return { parts: rows.map(mapPart), next: last && Number(last.map_step) - 1 }
    },
  }
}

/** Those of some outputs that are not blocked. */
export async function unblocked<Row extends OutpointRow>(reader: SqlReader, outputs: Row[]): Promise<Row[]> {
  const outpoints = outputs.map(outpointOf)
  const found: OutpointRow[] = await reader.all(
    `select txid, vout from graph_blocked where ${anyOutpoint(outpoints)}`,
    outpointValues(outpoints),
  )
  const blocked = new Set(found.map((row) => formatOutpoint(outpointOf(row))))
  return outputs.filter((output) => !blocked.has(formatOutpoint(outpointOf(output))))
}
