import type { Knex } from 'knex'
import { formatOutpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  hexOf,
  inParts,
  type OutpointRow,
  outpointColumns,
  outpointOf,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../columns.js'
import type { Head, OutputTables } from '../graph-tables.js'
import type { Lineage } from '../lineages.js'
import { rest } from '../rest.js'
import { UNBLOCKED } from './map-rows.js'
import { anyOf, anyOutpoint, anyPair, knexReader } from './sql-reader.js'

const FROM_STEP = 'from graph_outputs where lineage_txid = ? and lineage_vout = ? and'

/** See {@link OutputTables}. */
export function outputTablesIn(trx: Knex.Transaction): OutputTables {
  const reader = knexReader(trx)
  const isThere = async (condition: string, { lineage, from }: { lineage: Lineage; from: number }) =>
    (await reader.first(`select 1 ${FROM_STEP} ${condition} limit 1`, [...lineage, from])) !== undefined
  return {
    unsettledAmong: (outpoints) =>
      inParts(outpoints, async (part) => {
        const rows = await trx('graph_outputs')
          .whereRaw(anyOutpoint(part), part.flatMap(outpointPair))
          .where({ unsettled: true })
          .select('txid', 'vout')
        return rows.map(outpointOf)
      }),
    async unsettledOf(txid) {
      const rows = await trx('graph_outputs')
        .where({ txid: hashColumn(txid), unsettled: true })
        .select('vout')
      return rows.map(({ vout }) => Number(vout))
    },
    unsettledSpenders: (txids) =>
      inParts(txids, async (part) => {
        const rows = await reader.all(
          `select distinct spends.spender from graph_spends as spends
           join graph_outputs as outputs on outputs.txid = spends.spender
           where spends.txid in (${anyOf(part)}) and outputs.unsettled = 1`,
          part.map(hashColumn),
        )
        return rows.map(({ spender }) => hexOf(spender))
      }),
    async settle(outpoint, previous) {
      await trx('graph_outputs')
        .where(outpointColumns(outpoint))
        .update({
          unsettled: false,
          ...(previous && { previous_txid: hashColumn(previous.txid), previous_vout: previous.vout }),
        })
    },
    async furtherAmong(outpoints) {
      const rows = await trx('graph_outputs')
        .whereRaw(anyOutpoint(outpoints), outpoints.flatMap(outpointPair))
        .where('step', '>', 0)
        .select('txid', 'vout')
      return rows.map(outpointOf)
    },
    async headsAmong(outpoints) {
      const own = anyPair(['own.txid', 'own.vout'], outpoints)
      return (await heads(trx).whereRaw(own, outpoints.flatMap(outpointPair))).map(headOf)
    },
    async headsBehind(outpoints) {
      const received = anyPair(['own.previous_txid', 'own.previous_vout'], outpoints)
      return (await heads(trx).whereRaw(received, outpoints.flatMap(outpointPair))).map(headOf)
    },
    async moveSteps({ lineage, from, to, further }) {
      const shifted = ['step', 'content_step', 'parent_step', 'map_step'].map((column) => [
        column,
        trx.raw('?? + ?', [column, further]),
      ])
      await trx('graph_outputs')
        .where(inLineage(lineage))
        .where('step', '>=', from)
        .update({ ...inLineage(to), ...Object.fromEntries(shifted) })
    },
    stepsOf: (outpoints) =>
      inParts(unique(outpoints, formatOutpoint), async (part) => {
        const rows = await reader.all(
          `select lineage_txid, lineage_vout, step from graph_outputs where ${anyOutpoint(part)}`,
          part.flatMap(outpointPair),
        )
        return rows.map((row) => ({
          lineage: outpointOf({ txid: row.lineage_txid, vout: row.lineage_vout }),
          from: Number(row.step),
        }))
      }),
    hasMap: (place) => isThere('map_step >= ?', place),
    async mergedFrom({ lineage, from }) {
      const rows = await reader.all(
        `select txid, vout ${FROM_STEP} map_step >= ? and merged_length is not null order by map_step`,
        [...lineage, from],
      )
      return rows.map(outpointOf)
    },
    async mapsFrom({ lineage, from, limit }) {
      const rows = await reader.all(
        `select txid, vout, map_step, map_length ${FROM_STEP} map_step >= ? and ${UNBLOCKED}
         order by map_step limit ?`,
        [...lineage, from, limit],
      )
      const maps = rows.map((row) => ({
        outpoint: outpointOf(row),
        step: Number(row.map_step),
        length: Number(row.map_length),
      }))
      const last = maps.length < limit ? undefined : maps.at(-1)
      return { maps, next: last && last.step + 1 }
    },
    async setMerged(outpoint, length) {
      await trx('graph_outputs').where(outpointColumns(outpoint)).update({ merged_length: length })
    },
    async holderOf(outpoint) {
      const row = await reader.first(
        `select owner from graph_outputs as outputs where txid = ? and vout = ? and owner is not null and not exists (
           select 1 from graph_spends as spends where spends.txid = outputs.txid and spends.vout = outputs.vout
         )`,
        outpointPair(outpoint),
      )
      return row && hexOf(row.owner)
    },
    saysFrom: (place) =>
      isThere(
        'step >= ? and (content_step is not null or parent_step is not null or map_step is not null)',
        place,
      ),
    async deleteTraits(lineages, kinds) {
      for (const part of parts(lineages, ROWS_A_STATEMENT)) {
        await trx('graph_traits')
          .whereRaw(anyPair(['lineage_txid', 'lineage_vout'], part), part.flat())
          .whereIn('kind', kinds)
          .delete()
        await rest()
      }
    },
  }
}

interface HeadRow extends OutpointRow {
  previous_txid: unknown
  previous_vout: unknown
}

/** Outputs that a lineage starts with though the coin that they received is here, and that are no name's origin. */
function heads(trx: Knex.Transaction): Knex.QueryBuilder<object, HeadRow[]> {
  return trx('graph_outputs as own')
    .join('graph_outputs as previous', (on) =>
      on.on('previous.txid', 'own.previous_txid').andOn('previous.vout', 'own.previous_vout'),
    )
    .leftJoin('graph_names as names', (on) => on.on('names.txid', 'own.txid').andOn('names.vout', 'own.vout'))
    .whereNull('names.txid')
    .whereRaw('own.lineage_txid = own.txid and own.lineage_vout = own.vout')
    .select('own.txid', 'own.vout', 'own.previous_txid', 'own.previous_vout')
}

function headOf(row: HeadRow): Head {
  return {
    outpoint: outpointOf(row),
    previous: outpointOf({ txid: row.previous_txid, vout: row.previous_vout }),
  }
}

function inLineage([lineage_txid, lineage_vout]: Lineage): { lineage_txid: Buffer; lineage_vout: number } {
  return { lineage_txid, lineage_vout }
}
