import type { Direction, Streams } from '../read/read-streams.js'
import { outpointPair } from '../rows/columns.js'
import type { SqlReader } from './reader.js'

/**
 * A page of a lineage from so many steps away from an output on. The output is found anew for each page, in the same
 * statement, as steps are counted anew when what was missing before them comes.
 */
const PAGES: Record<Direction, string> = {
  onwards: pageOf('>= (select step from place) + ?', 'asc'),
  back: pageOf('<= (select step from place) - ?', 'desc'),
}

// The place is no table to join with: MariaDB would sort the steps then, though an index has them in order.
function pageOf(reach: string, order: 'asc' | 'desc'): string {
  return `with place as (select lineage_txid, lineage_vout, step from graph_outputs where txid = ? and vout = ?)
    select txid, vout, satoshis, content_sha256, content_type, content_length, step - (select step from place) as away
    from graph_outputs where lineage_txid = (select lineage_txid from place)
      and lineage_vout = (select lineage_vout from place) and step ${reach}
    order by step ${order} limit ?`
}

/** The streams of a database. */
export function streamRowsIn(reader: SqlReader): Streams {
  return {
    async streamPage({ outpoint, direction, from, limit }) {
      const rows = await reader.all(PAGES[direction], [...outpointPair(outpoint), from, limit])
      return rows.map((row) => ({ ...row, away: Number(row.away) }))
    },
  }
}
