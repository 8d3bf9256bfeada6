import type { Knex } from 'knex'
import { commandsFor, encodeMap } from '../../graph/map-coder.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import { hashColumn, type OutpointRow, outpointColumns, outpointOf, outpointPair } from '../columns.js'
import { MapGrowth } from '../map-growth.js'
import { mapOwner, mergedMap } from '../merged-map.js'
import { rest } from '../rest.js'
import type { Change } from './lineage.js'
import { mapsIn, UNBLOCKED } from './map-rows.js'
import { writePieces } from './pieces.js'
import { knexReader } from './sql-reader.js'

const PAGE = 100

/** Makes the merged MAP along lineages follow what has changed. */
export async function keepMapStates(trx: Knex.Transaction, changes: Change[]): Promise<void> {
  for (const change of changes) await keepAlong(trx, change)
}

interface MapRow extends OutpointRow {
  map_step: unknown
  map_length: unknown
  merged_length: unknown
}

async function keepAlong(trx: Knex.Transaction, { lineage, from }: Change): Promise<void> {
  await rest()
  const inLineage = { lineage_txid: hashColumn(lineage.txid), lineage_vout: lineage.vout }
  const all = (): Knex.QueryBuilder<object, MapRow[]> =>
    trx('graph_outputs')
      .where(inLineage)
      .select('txid', 'vout', 'map_step', 'map_length', 'merged_length')
      .orderBy('map_step')
  const first = await all().where('map_step', '>=', from).first()
  if (first === undefined) return
  for (const row of await all().where('map_step', '>=', from).whereNotNull('merged_length'))
    await drop(trx, row)
  const maps = () => all().whereRaw(UNBLOCKED)
  const start = await trx('graph_outputs').where(inLineage).min('content_step as origin').first()
  // What was said before there was content was not said of the ordinal.
  if (start === undefined || start.origin === null) return
  const origin = Number(start.origin)

  const growth = await growthBefore(maps, { origin, from })
  for (let next = Math.max(origin, from); ; ) {
    const rows = await maps().where('map_step', '>=', next).limit(PAGE)
    await rest()
    for (const row of rows) {
      if (!growth.isDue(Number(row.map_length))) continue
      const stretch = { lineage: outpointPair(lineage), from: origin, to: Number(row.map_step) }
      growth.keep(await keep(trx, row, stretch))
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE) return
    next = Number(last.map_step) + 1
  }
}

/** How long the last merged MAP before a step is, and how much was said since. */
async function growthBefore(
  maps: () => Knex.QueryBuilder<object, MapRow[]>,
  { origin, from }: { origin: number; from: number },
): Promise<MapGrowth> {
  const earlier = () => maps().whereBetween('map_step', [origin, from - 1])
  const state = await earlier().whereNotNull('merged_length').clearOrder().orderBy('map_step', 'desc').first()
  const after = state === undefined ? origin : Number(state.map_step) + 1
  const rows = await earlier().where('map_step', '>=', after)
  const since = rows.map(({ map_length }) => Number(map_length))
  return new MapGrowth({ kept: Number(state?.merged_length ?? 0), since })
}

async function keep(
  trx: Knex.Transaction,
  row: MapRow,
  stretch: Parameters<typeof mergedMap>[1],
): Promise<number> {
  const outpoint = outpointOf(row)
  const bytes = encodeMap(commandsFor((await mergedMap(mapsIn(knexReader(trx)), stretch)) ?? EMPTY_MAP))
  await writePieces(trx, [{ owner: mapOwner({ outpoint, merged: true }), bytes }])
  await trx('graph_outputs').where(outpointColumns(outpoint)).update({ merged_length: bytes.length })
  return bytes.length
}

async function drop(trx: Knex.Transaction, row: OutpointRow): Promise<void> {
  const outpoint = outpointOf(row)
  await trx('graph_pieces')
    .where({ owner: mapOwner({ outpoint, merged: true }) })
    .delete()
  await trx('graph_outputs').where(outpointColumns(outpoint)).update({ merged_length: null })
}
