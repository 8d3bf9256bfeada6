import { ORIGIN, type OrdinalStep, TIP } from '../../graph/graph-store.js'
import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { bytesOf, hashColumn, hexOf, type OutpointRow, outpointOf, outpointPair } from './columns.js'
import type { SqlReader } from './sql-reader.js'

/** Reads of `graph_outputs`; each is a look-up in an index, whatever the length of a lineage. */

const IN_LINEAGE = 'select * from graph_outputs where lineage_txid = ? and lineage_vout = ?'

/** The last output of the lineage that an output stands in; undefined where the store does not hold the output. */
export async function lineageTip(reader: SqlReader, outpoint: Outpoint): Promise<Outpoint | undefined> {
  const row: OutputRow | undefined = await rowOf(reader, outpoint)
  const tip = row && (await reader.first(`${IN_LINEAGE} order by step desc limit 1`, lineageOf(row)))
  return tip && outpointOf(tip)
}

/** See `OrdinalsReader.ordinalAt`. */
export async function ordinalAt(
  reader: SqlReader,
  outpoint: Outpoint,
  sequence: number,
): Promise<OrdinalStep | undefined> {
  const row: OutputRow | undefined = await rowOf(reader, outpoint)
  if (row === undefined) return undefined
  if (Number(row.satoshis) !== 1) return alone(outputOf(row), sequence)
  const lineage = lineageOf(row)
  if (!(await isWhole(reader, lineage))) return undefined
  const origin: OutputRow | undefined = await reader.first(
    `${IN_LINEAGE} and content_step is not null order by content_step limit 1`,
    lineage,
  )
  if (origin === undefined) return undefined
  const last: OutputRow = await reader.first(`${IN_LINEAGE} order by step desc limit 1`, lineage)
  const step = stepAt(sequence, { origin: Number(origin.step), last: Number(last.step) })
  const at: OutputRow | undefined = await reader.first(`${IN_LINEAGE} and step = ?`, [...lineage, step])
  if (at === undefined) return undefined
  const content: OutputRow = await reader.first(
    `${IN_LINEAGE} and content_step <= ? order by content_step desc limit 1`,
    [...lineage, step],
  )
  return {
    output: outputOf(at),
    sequence: step - Number(origin.step),
    origin: outpointOf(origin),
    content: outputOf(content),
    tip: step === Number(last.step),
  }
}

function stepAt(sequence: number, { origin, last }: { origin: number; last: number }): number {
  if (sequence === TIP) return last
  return sequence === ORIGIN ? origin : origin + sequence
}

/** An output that is no ordinal is its own origin and tip. */
function alone(output: OutputRecord, sequence: number): OrdinalStep | undefined {
  if (output.content === undefined || ![0, TIP, ORIGIN].includes(sequence)) return undefined
  return { output, sequence: 0, origin: output.outpoint, content: output, tip: true }
}

/** Whether nothing is missing before the first output of a lineage: it received no 1-sat coin, or it is a name's origin. */
async function isWhole(reader: SqlReader, [txid, vout]: [Buffer, number]): Promise<boolean> {
  const first = await reader.first(
    `select txid from graph_outputs as outputs where txid = ? and vout = ? and (
       (unsettled = 0 and previous_txid is null) or exists (
         select 1 from graph_names as names where names.txid = outputs.txid and names.vout = outputs.vout
       )
     )`,
    [txid, vout],
  )
  return first !== undefined
}

async function rowOf(reader: SqlReader, outpoint: Outpoint): Promise<OutputRow | undefined> {
  return await reader.first('select * from graph_outputs where txid = ? and vout = ?', outpointPair(outpoint))
}

function lineageOf(row: OutputRow): [Buffer, number] {
  return [hashColumn(hexOf(row.lineage_txid)), Number(row.lineage_vout)]
}

interface OutputRow extends OutpointRow {
  satoshis: unknown
  content_sha256: unknown
  content_type: unknown
  content_length: unknown
  previous_txid: unknown
  previous_vout: unknown
  unsettled: unknown
  lineage_txid: unknown
  lineage_vout: unknown
  step: unknown
}

/** The record that a row of `graph_outputs` is. */
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
    ...(row.previous_txid !== null && {
      previous: { txid: hexOf(row.previous_txid), vout: Number(row.previous_vout) },
    }),
    ...(Number(row.unsettled) === 1 && { unsettled: true }),
  }
}
