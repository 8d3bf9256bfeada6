import type { Lineages } from '../read/lineages.js'
import { SHORT, SHORT_LINEAGE, shortLineage } from '../read/short-lineage.js'
import { outpointPair } from '../rows/columns.js'
import { lineagesIn, placeIn } from './lineages.js'
import { unblocked } from './maps.js'
import type { SqlReader } from './reader.js'

/** The first outputs of the lineage that an output stands in. */
const FIRST = `select place.satoshis as place_satoshis, place.carrier as place_carrier, place.step as place_step, place.lineage_txid, place.lineage_vout,
  ${SHORT_LINEAGE.map((column) => `each_one.${column}`).join(', ')}
  from graph_outputs as place join graph_outputs as each_one
    on each_one.lineage_txid = place.lineage_txid and each_one.lineage_vout = place.lineage_vout
      and each_one.step < ${SHORT}
  where place.txid = ? and place.vout = ?`

/** The lineages of a database on MySQL, which plans each subquery of a statement anew whenever it is asked. */
export function mysqlLineagesIn(reader: SqlReader): Lineages {
  const lineages = lineagesIn(reader)
  return {
    ...lineages,
    async summaryOf(outpoint) {
      const rows = await reader.all(FIRST, outpointPair(outpoint))
      const [row] = rows
      if (row === undefined || rows.length === SHORT) return await lineages.summaryOf(outpoint)
      const {
        place_satoshis: satoshis,
        place_carrier: carrier,
        place_step: step,
        lineage_txid,
        lineage_vout,
      } = row
      const place = placeIn({ satoshis, carrier, step, lineage_txid, lineage_vout })
      return await shortLineage(place, rows, {
        isWhole: () => lineages.isWhole(place.lineage),
        unblocked: (outputs) => unblocked(reader, outputs),
      })
    },
  }
}
