import { ORIGIN, type OrdinalStep, TIP } from '../../graph/graph-store.js'
import { EMPTY_MAP, type MapState } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { bytesOf, hashColumn, hexOf, type OutpointRow, outpointOf, outpointPair } from './columns.js'
import { mergedMap } from './merged-map.js'
import type { SqlReader } from './sql-reader.js'

/** Reads of `graph_outputs`; each is a look-up in an index, whatever the length of a lineage. */

/** What a lineage is called by: its first output, as bound in SQL. */
export type Lineage = [txid: Buffer, vout: number]

const IN_LINEAGE = 'select * from graph_outputs where lineage_txid = ? and lineage_vout = ?'

/** The last output of the lineage that an output stands in; undefined where the store does not hold the output. */
export async function lineageTip(reader: SqlReader, outpoint: Outpoint): Promise<Outpoint | undefined> {
  const row: OutputRow | undefined = await rowOf(reader, outpoint)
  const tip = row && (await lastOf(reader, lineageOf(row)))
  return tip && outpointOf(tip)
}

/** The last output of a lineage. */
export async function lastOf(reader: SqlReader, lineage: Lineage): Promise<OutputRow | undefined> {
  return await reader.first(`${IN_LINEAGE} order by step desc limit 1`, lineage)
}

/** The first output of a lineage with content: where it is whole, the origin. */
export async function firstContentOf(reader: SqlReader, lineage: Lineage): Promise<OutputRow | undefined> {
  return await reader.first(
    `${IN_LINEAGE} and content_step is not null order by content_step limit 1`,
    lineage,
  )
}

/** The last output of a stretch with content, or with a parent. */
export async function latestOf(
  reader: SqlReader,
  what: 'content' | 'parent',
  { lineage, from, to }: { lineage: Lineage; from: number; to: number },
): Promise<OutputRow | undefined> {
  return await reader.first(
    `${IN_LINEAGE} and ${what}_step between ? and ? order by ${what}_step desc limit 1`,
    [...lineage, from, to],
  )
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
  const origin = await firstContentOf(reader, lineage)
  const last = await lastOf(reader, lineage)
  if (origin === undefined || last === undefined) return undefined
  const from = Number(origin.step)
  const step = stepAt(sequence, { origin: from, last: Number(last.step) })
  const at: OutputRow | undefined =
    step === Number(last.step) ? last : await reader.first(`${IN_LINEAGE} and step = ?`, [...lineage, step])
  const stretch = { lineage, from, to: step }
  const content = await latestOf(reader, 'content', stretch)
  if (at === undefined || content === undefined) return undefined
  const parent = await latestOf(reader, 'parent', stretch)
  return {
    output: outputOf(at),
    sequence: step - from,
    origin: outpointOf(origin),
    content: outputOf(content),
    ...(parent && { parent: outputOf(parent).parent }),
    tip: at === last,
  }
}

function stepAt(sequence: number, { origin, last }: { origin: number; last: number }): number {
  if (sequence === TIP) return last
  return sequence === ORIGIN ? origin : origin + sequence
}

/** An output that is no ordinal is its own origin and tip. */
function alone(output: OutputRecord, sequence: number): OrdinalStep | undefined {
  if (output.content === undefined || ![0, TIP, ORIGIN].includes(sequence)) return undefined
  const { outpoint, parent } = output
  return { output, sequence: 0, origin: outpoint, content: output, ...(parent && { parent }), tip: true }
}

/** Whether nothing is missing before the first output of a lineage: it received no 1-sat coin, or it is a name's origin. */
export async function isWhole(reader: SqlReader, [txid, vout]: Lineage): Promise<boolean> {
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

/** The lineage that an output stands in; one of its own where the store does not hold the output. */
export async function lineageIn(reader: SqlReader, outpoint: Outpoint): Promise<Lineage> {
  const row = await rowOf(reader, outpoint)
  return row === undefined ? outpointPair(outpoint) : lineageOf(row)
}

/** The MAP of an ordinal up to an output, or of one that is no ordinal; see `MapReader.mergedMap`. */
export async function mapUpTo(
  reader: SqlReader,
  outpoint: Outpoint,
  limit?: number,
): Promise<MapState | undefined> {
  const row = await rowOf(reader, outpoint)
  if (row === undefined) return EMPTY_MAP
  const lineage = lineageOf(row)
  const origin = await firstContentOf(reader, lineage)
  if (origin === undefined) return EMPTY_MAP
  return await mergedMap(reader, {
    lineage: outpointOf({ txid: lineage[0], vout: lineage[1] }),
    from: Number(origin.step),
    to: Number(row.step),
    ...(limit !== undefined && { limit }),
  })
}

async function rowOf(reader: SqlReader, outpoint: Outpoint): Promise<OutputRow | undefined> {
  return await reader.first('select * from graph_outputs where txid = ? and vout = ?', outpointPair(outpoint))
}

function lineageOf(row: OutputRow): Lineage {
  return [hashColumn(hexOf(row.lineage_txid)), Number(row.lineage_vout)]
}

export interface OutputRow extends OutpointRow {
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
  owner: unknown
  parent_txid: unknown
  parent_vout: unknown
  map_length: unknown
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
    ...(row.owner !== null && { owner: hexOf(row.owner) }),
    ...(row.parent_txid !== null && {
      parent: { txid: hexOf(row.parent_txid), vout: Number(row.parent_vout) },
    }),
    ...(row.map_length !== null && { mapLength: Number(row.map_length) }),
    ...(row.previous_txid !== null && {
      previous: { txid: hexOf(row.previous_txid), vout: Number(row.previous_vout) },
    }),
    ...(Number(row.unsettled) === 1 && { unsettled: true }),
  }
}
