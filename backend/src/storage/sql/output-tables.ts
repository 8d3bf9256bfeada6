import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  hexOf,
  inParts,
  type Lineage,
  type OutpointRow,
  outpointOf,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import type { Head, OutputTables } from '../write/graph-tables.js'
import { anyOf, anyOutpoint, anyPair, outpointValues, type SqlValue, type SqlWriter } from './database.js'
import { UNBLOCKED } from './lineages.js'
import { genuineOrigins } from './names.js'

const FROM_STEP = 'from graph_outputs where lineage_txid = ? and lineage_vout = ? and'

/** How many outputs one statement moves into another lineage: it blocks the thread. */
const MOVED_AT_ONCE = 200

/** See `Head`. Origins of names are none. */
const HEADS = `select own.txid, own.vout, own.previous_txid, own.previous_vout from graph_outputs as own
  join graph_outputs as previous on previous.txid = own.previous_txid and previous.vout = own.previous_vout
  left join graph_names as names on names.txid = own.txid and names.vout = own.vout
  where names.txid is null and own.lineage_txid = own.txid and own.lineage_vout = own.vout`

/** An inscribed output has one of these. */
const INSCRIBED_STEPS = ['content_step', 'parent_step', 'map_step']
const isOnlyWith = (step: string): string => `not exists (
  select 1 from graph_outputs as other
  where other.lineage_txid = own.txid and other.lineage_vout = own.vout and other.${step} > 0
)`

const TIPS = `select first.txid, first.vout, own.step, own.owner, own.map_step is not null as has_map,
  (${INSCRIBED_STEPS.map((step) => `own.${step} is not null`).join(' or ')}) as is_inscribed,
  exists (select 1 from graph_spends as spends where spends.txid = own.txid and spends.vout = own.vout) as spent
  from graph_outputs as first
  join graph_outputs as own on own.lineage_txid = first.txid and own.lineage_vout = first.vout and own.step = (
    select max(step) from graph_outputs as other
    where other.lineage_txid = first.txid and other.lineage_vout = first.vout
  )`

/** See {@link OutputTables}. */
export function outputTablesIn(writer: SqlWriter): OutputTables {
  const outpointsOf = (outpoints: Outpoint[], sql: (part: Outpoint[]) => string): Promise<Outpoint[]> =>
    inParts(outpoints, async (part) => (await writer.all(sql(part), outpointValues(part))).map(outpointOf))
  const isThere = async (condition: string, { lineage, from }: { lineage: Lineage; from: number }) =>
    (await writer.first(`select 1 ${FROM_STEP} ${condition} limit 1`, [...lineage, from])) !== undefined
  return {
    unresolvedAmong: (outpoints) =>
      outpointsOf(
        outpoints,
        (part) => `select txid, vout from graph_outputs where ${anyOutpoint(part)} and unsettled = 1`,
      ),
    async unresolvedOf(txid) {
      const rows = await writer.all('select vout from graph_outputs where txid = ? and unsettled = 1', [
        hashColumn(txid),
      ])
      return rows.map(({ vout }) => Number(vout))
    },
    async unresolvedSpenders(txids) {
      // In two steps: a join would pair each spend with each output of the spender.
      const spenders = await inParts(txids, (part) =>
        writer.all(
          `select distinct spender from graph_spends where txid in (${anyOf(part)})`,
          part.map(hashColumn),
        ),
      )
      const distinct = [...new Set(spenders.map(({ spender }) => hexOf(spender)))]
      const rows = await inParts(distinct, (part) =>
        writer.all(
          `select distinct txid from graph_outputs where txid in (${anyOf(part)}) and unsettled = 1`,
          part.map(hashColumn),
        ),
      )
      return rows.map(({ txid }) => hexOf(txid))
    },
    async resolvePredecessor(outpoint, previous) {
      const received = previous ? ', previous_txid = ?, previous_vout = ?' : ''
      await writer.run(`update graph_outputs set unsettled = 0${received} where txid = ? and vout = ?`, [
        ...(previous ? outpointPair(previous) : []),
        ...outpointPair(outpoint),
      ])
    },
    valuesAmong: (outpoints) =>
      inParts(outpoints, async (part) => {
        const rows = await writer.all(
          `select txid, vout, satoshis from graph_outputs where ${anyOutpoint(part)}`,
          outpointValues(part),
        )
        return rows.map((row) => ({ outpoint: outpointOf(row), satoshis: Number(row.satoshis) }))
      }),
    receivedBy: (outpoints) =>
      outpointsOf(
        outpoints,
        (part) => `select own.previous_txid as txid, own.previous_vout as vout from graph_outputs as own
           left join graph_names as names on names.txid = own.txid and names.vout = own.vout
           where names.txid is null and own.previous_txid is not null
             and ${anyPair(['own.txid', 'own.vout'], part)}`,
      ),
    missingBehind: (txids) =>
      inParts(txids, async (part) => {
        const rows = await writer.all(
          `select distinct own.previous_txid as txid, own.previous_vout as vout from graph_outputs as own
           left join graph_outputs as previous
             on previous.txid = own.previous_txid and previous.vout = own.previous_vout
           where own.previous_txid in (${anyOf(part)}) and previous.txid is null`,
          part.map(hashColumn),
        )
        return rows.map(outpointOf)
      }),
    aloneAmong: (outpoints) =>
      outpointsOf(
        outpoints,
        (part) => `select txid, vout from graph_outputs as own where ${anyOutpoint(part)}
             and lineage_txid = txid and lineage_vout = vout and not exists (
               select 1 from graph_outputs as other
               where other.lineage_txid = own.txid and other.lineage_vout = own.vout and other.step > 0
             )`,
      ),
    onlyInscribedAmong: (outpoints) =>
      outpointsOf(
        outpoints,
        (part) => `select txid, vout from graph_outputs as own where ${anyOutpoint(part)}
             and lineage_txid = txid and lineage_vout = vout and ${INSCRIBED_STEPS.map(isOnlyWith).join(' and ')}`,
      ),
    spentAmong: (outpoints) =>
      outpointsOf(
        outpoints,
        (part) => `select distinct txid, vout from graph_spends where ${anyOutpoint(part)}`,
      ),
    carriersAmong: (outpoints) =>
      outpointsOf(
        outpoints,
        (part) => `select txid, vout from graph_outputs where ${anyOutpoint(part)} and carrier = 1`,
      ),
    async admitCarriers(rows) {
      for (const { txid, vout, owner, parent_txid, parent_vout } of rows) {
        await writer.run(
          `update graph_outputs set carrier = 0, owner = ?, parent_txid = ?, parent_vout = ?,
           parent_step = ${parent_txid === null ? 'null' : 'step'}
           where txid = ? and vout = ? and carrier = 1`,
          [owner, parent_txid, parent_vout, txid, vout] as SqlValue[],
        )
        await yieldBetweenStatements()
      }
    },
    receiversOf: (outpoints) =>
      outpointsOf(
        outpoints,
        (part) =>
          `select txid, vout from graph_outputs where ${anyPair(['previous_txid', 'previous_vout'], part)}`,
      ),
    async furtherAmong(outpoints) {
      const rows = await writer.all(
        `select txid, vout from graph_outputs where ${anyOutpoint(outpoints)} and step > 0`,
        outpointValues(outpoints),
      )
      return rows.map(outpointOf)
    },
    async headsAmong(outpoints) {
      const own = anyPair(['own.txid', 'own.vout'], outpoints)
      return (await writer.all(`${HEADS} and ${own}`, outpointValues(outpoints))).map(headOf)
    },
    async headsBehind(outpoints) {
      const received = anyPair(['own.previous_txid', 'own.previous_vout'], outpoints)
      return (await writer.all(`${HEADS} and ${received}`, outpointValues(outpoints))).map(headOf)
    },
    async moveSteps({ lineage, from, to, further }) {
      const shifted = ['content_step', 'parent_step', 'map_step', 'step']
      const last = await writer.first(`select max(step) as step ${FROM_STEP} step >= ?`, [...lineage, from])
      for (let step = from; step <= Number(last?.step ?? -1); step += MOVED_AT_ONCE) {
        await writer.run(
          `update graph_outputs set lineage_txid = ?, lineage_vout = ?,
           ${shifted.map((column) => `${column} = ${column} + ?`).join(', ')}
           where lineage_txid = ? and lineage_vout = ? and step >= ? and step < ?`,
          [...to, ...shifted.map(() => further), ...lineage, step, step + MOVED_AT_ONCE],
        )
        await yieldBetweenStatements()
      }
    },
    stepsOf: (outpoints) =>
      inParts(unique(outpoints, formatOutpoint), async (part) => {
        const rows = await writer.all(
          `select txid, vout, lineage_txid, lineage_vout, step from graph_outputs where ${anyOutpoint(part)}`,
          outpointValues(part),
        )
        return rows.map((row) => ({
          outpoint: outpointOf(row),
          lineage: outpointOf({ txid: row.lineage_txid, vout: row.lineage_vout }),
          from: Number(row.step),
        }))
      }),
    namesAmong: (outpoints) => genuineOrigins(writer, outpoints),
    tipsOf: (lineages) =>
      inParts(lineages, async (part) => {
        const rows = await writer.all(
          `${TIPS} where ${anyPair(['first.txid', 'first.vout'], part)}`,
          outpointValues(part),
        )
        return rows.map((row) => ({
          lineage: outpointOf(row),
          step: Number(row.step),
          holder: row.owner === null || Number(row.spent) === 1 ? undefined : hexOf(row.owner),
          isInscribed: Number(row.is_inscribed) === 1,
          hasMap: Number(row.has_map) === 1,
        }))
      }),
    hasMap: (place) => isThere('map_step >= ?', place),
    async mergedFrom({ lineage, from }) {
      const rows = await writer.all(
        `select txid, vout ${FROM_STEP} map_step >= ? and merged_length is not null order by map_step`,
        [...lineage, from],
      )
      return rows.map(outpointOf)
    },
    async mapsFrom({ lineage, from, limit }) {
      const rows = await writer.all(
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
      await writer.run('update graph_outputs set merged_length = ? where txid = ? and vout = ?', [
        length,
        ...outpointPair(outpoint),
      ])
    },
    isInscribedFrom: (place) =>
      isThere(`step >= ? and (${INSCRIBED_STEPS.map((step) => `${step} is not null`).join(' or ')})`, place),
    async deleteAttributes(lineages, kinds) {
      for (const part of parts(lineages, ROWS_A_STATEMENT)) {
        await writer.run(
          `delete from graph_traits
           where ${anyPair(['lineage_txid', 'lineage_vout'], part)} and kind in (${anyOf(kinds)})`,
          [...outpointValues(part), ...kinds],
        )
        await yieldBetweenStatements()
      }
    },
  }
}

interface HeadRow extends OutpointRow {
  previous_txid: unknown
  previous_vout: unknown
}

function headOf(row: HeadRow): Head {
  return {
    outpoint: outpointOf(row),
    previous: outpointOf({ txid: row.previous_txid, vout: row.previous_vout }),
  }
}
