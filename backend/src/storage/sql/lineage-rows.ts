import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { bytesOf, hashColumn, hexOf, type OutpointRow, outpointOf, outpointPair } from '../columns.js'
import type { SqlReader } from './sql-reader.js'

/**
 * Rows of `graph_outputs`, each found in an index whatever the length of a lineage. Columns are named one by one: a driver
 * takes longer over a column than over finding the row.
 */

/** What a lineage is called by: its first output, as bound in SQL. */
export type Lineage = [txid: Buffer, vout: number]

/** A stretch of a lineage: the first and the last step included. */
export interface Steps {
  lineage: Lineage
  from: number
  to: number
}

/** An output at a step of the lineage that it stands in. */
export interface StepRow {
  outpoint: Outpoint
  step: number
}

/** The columns of an {@link OutputRow}. */
export const OUTPUT = [
  'txid',
  'vout',
  'satoshis',
  'content_sha256',
  'content_type',
  'content_length',
  'previous_txid',
  'previous_vout',
  'unsettled',
  'owner',
  'parent_txid',
  'parent_vout',
  'map_length',
]
const IN_LINEAGE = 'from graph_outputs where lineage_txid = ? and lineage_vout = ?'

/** Where an output stands; undefined where the store does not hold it. */
export async function placeOf(
  reader: SqlReader,
  outpoint: Outpoint,
): Promise<{ satoshis: number; lineage: Lineage; step: number } | undefined> {
  const row = await reader.first(
    'select satoshis, lineage_txid, lineage_vout, step from graph_outputs where txid = ? and vout = ?',
    outpointPair(outpoint),
  )
  return (
    row && {
      satoshis: Number(row.satoshis),
      lineage: [hashColumn(hexOf(row.lineage_txid)), Number(row.lineage_vout)],
      step: Number(row.step),
    }
  )
}

export async function outputAt(reader: SqlReader, outpoint: Outpoint): Promise<OutputRecord | undefined> {
  const row = await reader.first(
    `select ${OUTPUT} from graph_outputs where txid = ? and vout = ?`,
    outpointPair(outpoint),
  )
  return row && outputOf(row)
}

/** The first output of a transaction with content. */
export async function firstContentIn(reader: SqlReader, txid: string): Promise<OutputRecord | undefined> {
  const row = await reader.first(
    `select ${OUTPUT} from graph_outputs where txid = ? and content_sha256 is not null order by vout limit 1`,
    [hashColumn(txid)],
  )
  return row && outputOf(row)
}

/** The last output of a lineage. */
export async function lastOf(reader: SqlReader, lineage: Lineage): Promise<StepRow | undefined> {
  const row = await reader.first(`select txid, vout, step ${IN_LINEAGE} order by step desc limit 1`, lineage)
  return row && stepOf(row)
}

/** The first output of a lineage with content: where it is whole, the origin. */
export async function firstContentOf(reader: SqlReader, lineage: Lineage): Promise<StepRow | undefined> {
  const row = await reader.first(
    `select txid, vout, step ${IN_LINEAGE} and content_step is not null order by content_step limit 1`,
    lineage,
  )
  return row && stepOf(row)
}

export async function outputAtStep(
  reader: SqlReader,
  { lineage, step }: { lineage: Lineage; step: number },
): Promise<OutputRecord | undefined> {
  const row = await reader.first(`select ${OUTPUT} ${IN_LINEAGE} and step = ?`, [...lineage, step])
  return row && outputOf(row)
}

/** The last output of a stretch with content. */
export async function latestContent(
  reader: SqlReader,
  { lineage, from, to }: Steps,
): Promise<OutputRecord | undefined> {
  const row = await reader.first(
    `select ${OUTPUT} ${IN_LINEAGE} and content_step between ? and ? order by content_step desc limit 1`,
    [...lineage, from, to],
  )
  return row && outputOf(row)
}

/** What the last output of a stretch that names a parent names. */
export async function latestParent(
  reader: SqlReader,
  { lineage, from, to }: Steps,
): Promise<Outpoint | undefined> {
  const row = await reader.first(
    `select parent_txid as txid, parent_vout as vout ${IN_LINEAGE} and parent_step between ? and ?
     order by parent_step desc limit 1`,
    [...lineage, from, to],
  )
  return row && outpointOf(row)
}

/** Whether nothing is missing before the first output of a lineage: it received no 1-sat coin, or it is a name's origin. */
export async function isWhole(reader: SqlReader, [txid, vout]: Lineage): Promise<boolean> {
  const first = await reader.first(
    `select 1 from graph_outputs as outputs where txid = ? and vout = ? and (
       (unsettled = 0 and previous_txid is null) or exists (
         select 1 from graph_names as names where names.txid = outputs.txid and names.vout = outputs.vout
       )
     )`,
    [txid, vout],
  )
  return first !== undefined
}

function stepOf(row: OutpointRow & { step: unknown }): StepRow {
  return { outpoint: outpointOf(row), step: Number(row.step) }
}

export interface OutputRow extends OutpointRow {
  satoshis: unknown
  content_sha256: unknown
  content_type: unknown
  content_length: unknown
  previous_txid: unknown
  previous_vout: unknown
  unsettled: unknown
  owner: unknown
  parent_txid: unknown
  parent_vout: unknown
  map_length: unknown
}

export function outputOf(row: OutputRow): OutputRecord {
  return {
    outpoint: outpointOf(row),
    satoshis: Number(row.satoshis),
    ...(row.content_sha256 !== null && {
      content: {
        sha256: hexOf(row.content_sha256),
        contentType: Buffer.from(bytesOf(row.content_type)).toString('utf8'),
        length: Number(row.content_length),
      },
    }),
    ...(row.owner !== null && { owner: hexOf(row.owner) }),
    ...(row.parent_txid !== null && {
      parent: outpointOf({ txid: row.parent_txid, vout: row.parent_vout }),
    }),
    ...(row.map_length !== null && { mapLength: Number(row.map_length) }),
    ...(row.previous_txid !== null && {
      previous: outpointOf({ txid: row.previous_txid, vout: row.previous_vout }),
    }),
    ...(Number(row.unsettled) === 1 && { unsettled: true }),
  }
}
