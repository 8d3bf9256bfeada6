import { TIP } from '../../graph/graph-store.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { outpointOf } from '../columns.js'
import { placeOf } from './lineage-rows.js'
import { ordinalAt } from './ordinal-reads.js'
import type { SqlReader } from './sql-reader.js'

/** A lineage may have any number of steps: no more of them are held at once. */
const STEPS_A_PAGE = 1000

/** See `LineageReader.lineage`. */
export async function* lineageOf(reader: SqlReader, outpoint: Outpoint): AsyncGenerator<Outpoint> {
  const tip = (await ordinalAt(reader, outpoint, TIP))?.output
  if (tip === undefined) return
  if (tip.satoshis !== 1) {
    yield tip.outpoint
    return
  }
  const place = await placeOf(reader, outpoint)
  if (place === undefined) return
  for (let step = 0; ; ) {
    const rows = await reader.all(
      `select txid, vout, step from graph_outputs where lineage_txid = ? and lineage_vout = ? and step >= ?
       order by step limit ?`,
      [...place.lineage, step, STEPS_A_PAGE],
    )
    yield* rows.map(outpointOf)
    if (rows.length < STEPS_A_PAGE) return
    step = Number(rows.at(-1).step) + 1
  }
}
