import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lookups } from '../read/lookups.js'
import { hashColumn, hexOf, inParts, outpointOf } from '../rows/columns.js'
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

/** A condition on `own`: it starts a lineage in which no other output has one of these steps. */
const isFirstWithout = (steps: string[]): string =>
  [
    'own.lineage_txid = own.txid and own.lineage_vout = own.vout',
    ...steps.map(
      (step) => `not exists (
        select 1 from graph_outputs as other
        where other.lineage_txid = own.txid and other.lineage_vout = own.vout and other.${step} > 0
      )`,
    ),
  ].join(' and ')

const RECEIVED = `select own.previous_txid as txid, own.previous_vout as vout from graph_outputs as own
  left join graph_names as names on names.txid = own.txid and names.vout = own.vout
  where names.txid is null and own.previous_txid is not null`

const HEADS = `select own.txid, own.vout, own.previous_txid, own.previous_vout from graph_outputs as own
  join graph_outputs as previous on previous.txid = own.previous_txid and previous.vout = own.previous_vout
  left join graph_names as names on names.txid = own.txid and names.vout = own.vout
  where names.txid is null and own.lineage_txid = own.txid and own.lineage_vout = own.vout`

const TIPS = `select first.txid, first.vout, own.step, own.owner, own.map_step is not null as has_map,
  (${INSCRIBED_STEPS.map((step) => `own.${step} is not null`).join(' or ')}) as is_inscribed,
  exists (select 1 from graph_spends as spends where spends.txid = own.txid and spends.vout = own.vout) as spent
  from graph_outputs as first
  join graph_outputs as own on own.lineage_txid = first.txid and own.lineage_vout = first.vout and own.step = (
    select max(step) from graph_outputs as other
    where other.lineage_txid = first.txid and other.lineage_vout = first.vout
  )`

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

  async missingBehind(txids: string[]): Promise<Outpoint[]> {
    const rows = await inParts(txids, (part) =>
      this.writer.all(
        `select distinct own.previous_txid as txid, own.previous_vout as vout from graph_outputs as own
         left join graph_outputs as previous
           on previous.txid = own.previous_txid and previous.vout = own.previous_vout
         where own.previous_txid in (${anyOf(part)}) and previous.txid is null`,
        part.map(hashColumn),
      ),
    )
    return rows.map(outpointOf)
  }

  aloneAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.firstWithout(['step'], outpoints)
  }

  onlyInscribedAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.firstWithout(INSCRIBED_STEPS, outpoints)
  }

  async tipsOf(lineages: Outpoint[]): Promise<Tip[]> {
    const rows = await this.matching(`${TIPS} where`, lineages, ['first.txid', 'first.vout'])
    return rows.map((row) => ({
      lineage: outpointOf(row),
      step: Number(row.step),
      holder: row.owner === null || Number(row.spent) === 1 ? undefined : hexOf(row.owner),
      isInscribed: Number(row.is_inscribed) === 1,
      hasMap: Number(row.has_map) === 1,
    }))
  }

  async admitCarriers(rows: RecordRow[]): Promise<void> {
    for (const { txid, vout, owner, parent_txid, parent_vout } of rows) {
      await this.writer.run(
        `update graph_outputs set carrier = 0, owner = ?, parent_txid = ?, parent_vout = ?,
         parent_step = ${parent_txid === null ? 'null' : 'step'}
         where txid = ? and vout = ? and carrier = 1`,
        [owner, parent_txid, parent_vout, txid, vout] as SqlValue[],
      )
      await yieldBetweenStatements()
    }
  }

  async moveSteps({ lineage, from, to, further }: MovedSteps): Promise<void> {
    const shifted = ['content_step', 'parent_step', 'map_step', 'step']
    const inLineage = 'where lineage_txid = ? and lineage_vout = ?'
    const last = await this.writer.first(`select max(step) as step from graph_outputs ${inLineage}`, lineage)
    for (let step = from; step <= Number(last?.step ?? -1); step += MOVED_AT_ONCE) {
      await this.writer.run(
        `update graph_outputs set lineage_txid = ?, lineage_vout = ?,
         ${shifted.map((column) => `${column} = ${column} + ?`).join(', ')}
         ${inLineage} and step >= ? and step < ?`,
        [...to, ...shifted.map(() => further), ...lineage, step, step + MOVED_AT_ONCE],
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

  private async firstWithout(steps: string[], outpoints: Outpoint[]): Promise<Outpoint[]> {
    const sql = `select txid, vout from graph_outputs as own where ${isFirstWithout(steps)} and`
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
