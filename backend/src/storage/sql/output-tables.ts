import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lookups } from '../read/lookups.js'
import { hashColumn, hexOf, inParts, lineageOf, outpointOf } from '../rows/columns.js'
import type { RecordRow } from '../rows/record-rows.js'
import { anyOutpoint, type Row, type RowWriter } from '../rows/rows.js'
import {
  type Head,
  INSCRIBED_STEPS,
  type MovedSteps,
  OutputTables,
  type Tip,
} from '../write/output-tables.js'
import { anyOf, type SqlValue, type SqlWriter } from './database.js'
import { conditionOf } from './rows.js'

/** How many outputs one statement moves into another lineage: it blocks the thread. */
const MOVED_AT_ONCE = 200

/** A condition on `own`: it starts a complete lineage in which no other output has one of these steps. */
const IS_ONLY_INSCRIBED = [
  'own.lineage_txid = own.txid and own.lineage_vout = own.vout',
  ...INSCRIBED_STEPS.map(
    (step) => `not exists (
      select 1 from graph_outputs as other
      where other.lineage_txid = own.txid and other.lineage_vout = own.vout and other.${step} > 0
    )`,
  ),
].join(' and ')

/** A condition on `own`: its lineage has no other output. */
const IS_ALONE = [
  'own.step = 0',
  ...['>', '<'].map(
    (order) => `not exists (
      select 1 from graph_outputs as other where other.lineage_txid = own.lineage_txid
      and other.lineage_vout = own.lineage_vout and other.step ${order} 0
    )`,
  ),
].join(' and ')

const RECEIVED = `select own.previous_txid as txid, own.previous_vout as vout from graph_outputs as own
  left join graph_names as names on names.txid = own.txid and names.vout = own.vout
  where names.txid is null and own.previous_txid is not null`

const HEADS = `select own.txid, own.vout, own.previous_txid, own.previous_vout from graph_outputs as own
  join graph_outputs as previous on previous.txid = own.previous_txid and previous.vout = own.previous_vout
  left join graph_names as names on names.txid = own.txid and names.vout = own.vout
  where names.txid is null
  and (own.lineage_txid <> previous.lineage_txid or own.lineage_vout <> previous.lineage_vout)`

/** The outputs at the edge of the lineage of `member`. */
const atEdge = (name: string, edge: 'min' | 'max'): string =>
  `join graph_outputs as ${name} on ${name}.lineage_txid = member.lineage_txid
   and ${name}.lineage_vout = member.lineage_vout and ${name}.step = (
     select ${edge}(step) from graph_outputs as other
     where other.lineage_txid = member.lineage_txid and other.lineage_vout = member.lineage_vout
   )`

const TIPS = `select own.lineage_txid, own.lineage_vout, first.txid, first.vout, own.step, own.owner, own.map_step is not null as has_map,
  (${INSCRIBED_STEPS.map((step) => `own.${step} is not null`).join(' or ')}) as is_inscribed,
  exists (select 1 from graph_spends as spends where spends.txid = own.txid and spends.vout = own.vout) as spent
  from graph_outputs as member ${atEdge('own', 'max')} ${atEdge('first', 'min')}`

/** See {@link OutputTables}. */
export class SqlOutputTables extends OutputTables {
  private readonly writer: SqlWriter

  constructor({ writer, ...options }: { rows: RowWriter; lookups: Lookups; writer: SqlWriter }) {
    super(options)
    this.writer = writer
  }

  async receivedBy(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return (await this.matching(`${RECEIVED} and`, outpoints, ['own.txid', 'own.vout'])).map(outpointOf)
  }

  async receivedAmong(coins: Outpoint[]): Promise<Outpoint[]> {
    const rows = await this.matching(`${RECEIVED} and`, coins, ['own.previous_txid', 'own.previous_vout'])
    return rows.map(outpointOf)
  }

  async missingBehind(txids: string[]): Promise<Outpoint[]> {
    const rows = await inParts(txids, (part) =>
      this.writer.all(
        `select distinct own.previous_txid as txid, own.previous_vout as vout from graph_outputs as own
         left join graph_names as names on names.txid = own.txid and names.vout = own.vout
         left join graph_outputs as previous
           on previous.txid = own.previous_txid and previous.vout = own.previous_vout
         where names.txid is null and own.previous_txid in (${anyOf(part)}) and previous.txid is null`,
        part.map(hashColumn),
      ),
    )
    return rows.map(outpointOf)
  }

  aloneAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.ownAmong(outpoints, IS_ALONE)
  }

  onlyInscribedAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.ownAmong(outpoints, IS_ONLY_INSCRIBED)
  }

  async tipsOf(members: Outpoint[]): Promise<Tip[]> {
    const rows = await this.matching(`${TIPS} where`, members, ['member.txid', 'member.vout'])
    return rows.map((row) => ({
      lineage: lineageOf(row),
      first: outpointOf(row),
      step: Number(row.step),
      holder: row.owner === null || Number(row.spent) === 1 ? undefined : hexOf(row.owner),
      isInscribed: Number(row.is_inscribed) === 1,
      hasMap: Number(row.has_map) === 1,
    }))
  }

  async admitCarriers(rows: RecordRow[]): Promise<void> {
    for (const { txid, vout, owner, parent_txid, parent_vout, parent_step } of rows) {
      await this.writer.run(
        `update graph_outputs set carrier = 0, owner = ?, parent_txid = ?, parent_vout = ?,
         parent_step = ${parent_step === null ? 'null' : 'step'}
         where txid = ? and vout = ? and carrier = 1`,
        [owner, parent_txid, parent_vout, txid, vout] as SqlValue[],
      )
      await yieldBetweenStatements()
    }
  }

  async moveSteps({
    lineage,
    from,
    until = Number.MAX_SAFE_INTEGER,
    to,
    further,
  }: MovedSteps): Promise<void> {
    const shifted = ['content_step', 'parent_step', 'map_step', 'step']
    const inLineage = 'where lineage_txid = ? and lineage_vout = ?'
    const last = await this.writer.first(`select max(step) as step from graph_outputs ${inLineage}`, lineage)
    const end = Math.min(until, Number(last?.step ?? from) + 1)
    for (let step = from; step < end; step += MOVED_AT_ONCE) {
      await this.writer.run(
        `update graph_outputs set lineage_txid = ?, lineage_vout = ?,
         ${shifted.map((column) => `${column} = ${column} + ?`).join(', ')}
         ${inLineage} and step >= ? and step < ?`,
        [...to, ...shifted.map(() => further), ...lineage, step, Math.min(step + MOVED_AT_ONCE, end)],
      )
      await yieldBetweenStatements()
    }
  }

  protected async heads(outpoints: Outpoint[], [txid, vout]: readonly [string, string]): Promise<Head[]> {
    const rows = await this.matching(`${HEADS} and`, outpoints, [`own.${txid}`, `own.${vout}`])
    return rows.map((row) => ({
      outpoint: outpointOf(row),
      previous: outpointOf({ txid: row.previous_txid, vout: row.previous_vout }),
    }))
  }

  private async ownAmong(outpoints: Outpoint[], condition: string): Promise<Outpoint[]> {
    const sql = `select txid, vout from graph_outputs as own where ${condition} and`
    return (await this.matching(sql, outpoints, ['txid', 'vout'])).map(outpointOf)
  }

  /** Runs a selection with a condition on two of its columns: they are one of the outpoints. */
  private matching(select: string, outpoints: Outpoint[], columns: [string, string]): Promise<Row[]> {
    return inParts(outpoints, (part) => {
      const values: SqlValue[] = []
      return this.writer.all(`${select} ${conditionOf(anyOutpoint(part, columns), values)}`, values)
    })
  }
}
