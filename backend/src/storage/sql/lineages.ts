import type { OutputRecord } from '../../graph/records.js'
import type { Lineages, Place, StepRow } from '../read/lineages.js'
import { hashColumn, hexOf, numberIn, type OutpointRow, outpointOf, outpointPair } from '../rows/columns.js'
import { OUTPUT, outputOf } from '../rows/output-rows.js'
import { anyOf, type SqlReader } from './reader.js'

const IN_LINEAGE = 'from graph_outputs where lineage_txid = ? and lineage_vout = ?'

/** A step of the lineage that 'place' stands in: the first or the last that there is of a kind. */
const edge = (step: string, order: 'asc' | 'desc'): string =>
  `(select ${step} from graph_outputs as other
    where other.lineage_txid = place.lineage_txid and other.lineage_vout = place.lineage_vout and ${step} is not null
    order by ${step} ${order} limit 1)`

/** Of the first output of a lineage: nothing is missing before it. */
const isFirstOfAll = (first: string): string =>
  `((${first}.unsettled = 0 and ${first}.previous_txid is null) or exists (
    select 1 from graph_names as names where names.txid = ${first}.txid and names.vout = ${first}.vout
  ))`

const SHORT_LINEAGE = `select satoshis, carrier, lineage_txid, lineage_vout, step,
  ${edge('step', 'desc')} as last_step,
  ${edge('content_step', 'asc')} as first_content,
  ${edge('content_step', 'desc')} as last_content,
  ${edge('parent_step', 'desc')} as last_parent,
  exists (select 1 from graph_outputs as first
    where first.txid = place.lineage_txid and first.vout = place.lineage_vout and ${isFirstOfAll('first')}) as whole
  from graph_outputs as place where txid = ? and vout = ?`

/** The lineages of a database. */
export function lineagesIn(reader: SqlReader): Lineages {
  return {
    async placeOf(outpoint) {
      const row = await reader.first(
        'select satoshis, carrier, lineage_txid, lineage_vout, step from graph_outputs where txid = ? and vout = ?',
        outpointPair(outpoint),
      )
      return row && placeIn(row)
    },
    async summaryOf(outpoint) {
      const row = await reader.first(SHORT_LINEAGE, outpointPair(outpoint))
      return (
        row && {
          ...placeIn(row),
          isWhole: Number(row.whole) === 1,
          last: Number(row.last_step),
          origin: numberIn(row.first_content),
          content: numberIn(row.last_content),
          parent: numberIn(row.last_parent),
        }
      )
    },
    async outputAt(outpoint) {
      const row = await reader.first(
        `select ${OUTPUT} from graph_outputs where txid = ? and vout = ?`,
        outpointPair(outpoint),
      )
      return row && outputOf(row)
    },
    async lastOf(lineage) {
      const row = await reader.first(
        `select txid, vout, step ${IN_LINEAGE} order by step desc limit 1`,
        lineage,
      )
      return row && stepOf(row)
    },
    async firstContentOf(lineage) {
      const row = await reader.first(
        `select txid, vout, step ${IN_LINEAGE} and content_step is not null order by content_step limit 1`,
        lineage,
      )
      return row && stepOf(row)
    },
    async outputsAt({ lineage, steps }) {
      const rows = await reader.all(`select ${OUTPUT}, step ${IN_LINEAGE} and step in (${anyOf(steps)})`, [
        ...lineage,
        ...steps,
      ])
      return new Map(rows.map((row) => [Number(row.step), outputOf(row)]))
    },
    async latestContent({ lineage, from, to }) {
      const row = await reader.first(
        `select ${OUTPUT} ${IN_LINEAGE} and content_step between ? and ? order by content_step desc limit 1`,
        [...lineage, from, to],
      )
      return row && outputOf(row)
    },
    async latestParent({ lineage, from, to }) {
      const row = await reader.first(
        `select parent_txid as txid, parent_vout as vout ${IN_LINEAGE} and parent_step between ? and ?
         order by parent_step desc limit 1`,
        [...lineage, from, to],
      )
      return row && outpointOf(row)
    },
    async isWhole(lineage) {
      const first = await reader.first(
        `select 1 from graph_outputs as outputs where txid = ? and vout = ? and ${isFirstOfAll('outputs')}`,
        lineage,
      )
      return first !== undefined
    },
    async stepsFrom({ lineage, step, limit }) {
      const rows = await reader.all(
        `select txid, vout, step ${IN_LINEAGE} and step >= ? order by step limit ?`,
        [...lineage, step, limit],
      )
      return rows.map(stepOf)
    },
  }
}

/** The first output of a transaction with content. */
export async function firstContentIn(reader: SqlReader, txid: string): Promise<OutputRecord | undefined> {
  const row = await reader.first(
    `select ${OUTPUT} from graph_outputs where txid = ? and content_sha256 is not null order by vout limit 1`,
    [hashColumn(txid)],
  )
  return row && outputOf(row)
}

/** Where an output stands. */
export function placeIn(row: {
  satoshis: unknown
  carrier: unknown
  lineage_txid: unknown
  lineage_vout: unknown
  step: unknown
}): Place {
  return {
    satoshis: Number(row.satoshis),
    isCarrier: Number(row.carrier) === 1,
    lineage: [hashColumn(hexOf(row.lineage_txid)), Number(row.lineage_vout)],
    step: Number(row.step),
  }
}

function stepOf(row: OutpointRow & { step: unknown }): StepRow {
  return { outpoint: outpointOf(row), step: Number(row.step) }
}
