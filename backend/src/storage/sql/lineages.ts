import type { Knex } from 'knex'
import type { OutputRecord } from '../../graph/records.js'
import { formatOutpoint } from '../../protocol/outpoint.js'
import {
  type Lineages,
  type Maps,
  mapPartOf,
  type Place,
  SHORT,
  SHORT_LINEAGE,
  type StepRow,
  shortLineage,
} from '../read/lineages.js'
import type { Direction, Streams } from '../read/read-streams.js'
import { hashColumn, hexOf, numberIn, type OutpointRow, outpointOf, outpointPair } from '../rows/columns.js'
import { OUTPUT, outputOf } from '../rows/record-rows.js'
import { chunksIn } from './content.js'
import { anyOf, anyOutpoint, isMysql, outpointValues, type SqlReader } from './database.js'

const IN_LINEAGE = 'from graph_outputs where lineage_txid = ? and lineage_vout = ?'

/** The first or the last step of a kind in the lineage of `place`. */
const edge = (step: string, order: 'asc' | 'desc'): string =>
  `(select ${step} from graph_outputs as other
    where other.lineage_txid = place.lineage_txid and other.lineage_vout = place.lineage_vout and ${step} is not null
    order by ${step} ${order} limit 1)`

/** A condition on the first output of a lineage: nothing is missing before it. */
const isFirstOfAll = (first: string): string =>
  `((${first}.unsettled = 0 and ${first}.previous_txid is null) or exists (
    select 1 from graph_names as names where names.txid = ${first}.txid and names.vout = ${first}.vout
  ))`

const SUMMARY = `select satoshis, carrier, lineage_txid, lineage_vout, step,
  ${edge('step', 'desc')} as last_step,
  ${edge('content_step', 'asc')} as first_content,
  ${edge('content_step', 'desc')} as last_content,
  ${edge('parent_step', 'desc')} as last_parent,
  exists (select 1 from graph_outputs as first
    where first.txid = place.lineage_txid and first.vout = place.lineage_vout and ${isFirstOfAll('first')}) as complete
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
      const row = await reader.first(SUMMARY, outpointPair(outpoint))
      return (
        row && {
          ...placeIn(row),
          isComplete: Number(row.complete) === 1,
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
    async isComplete(lineage) {
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

function placeIn(row: {
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

/** The first outputs of an output's lineage. */
const FIRST = `select place.satoshis as place_satoshis, place.carrier as place_carrier, place.step as place_step, place.lineage_txid, place.lineage_vout,
  ${SHORT_LINEAGE.map((column) => `each_one.${column}`).join(', ')}
  from graph_outputs as place join graph_outputs as each_one
    on each_one.lineage_txid = place.lineage_txid and each_one.lineage_vout = place.lineage_vout
      and each_one.step < ${SHORT}
  where place.txid = ? and place.vout = ?`

/** The lineages of a MySQL database, which plans each subquery of a statement again whenever it runs. */
function mysqlLineagesIn(reader: SqlReader): Lineages {
  const lineages = lineagesIn(reader)
  return {
    ...lineages,
    async summaryOf(outpoint) {
      const rows = await reader.all(FIRST, outpointPair(outpoint))
      const [row] = rows
      if (row === undefined || rows.length === SHORT) return await lineages.summaryOf(outpoint)
      const {
        place_satoshis: satoshis,
        place_carrier: carrier,
        place_step: step,
        lineage_txid,
        lineage_vout,
      } = row
      const place = placeIn({ satoshis, carrier, step, lineage_txid, lineage_vout })
      return await shortLineage(place, rows, {
        isComplete: () => lineages.isComplete(place.lineage),
        unblocked: (outputs) => unblocked(reader, outputs),
      })
    },
  }
}

/** A condition on `graph_outputs`: the MAP of a blocked output does not count at later steps either. */
export const UNBLOCKED = `not exists (
  select 1 from graph_blocked as blocked where blocked.txid = graph_outputs.txid and blocked.vout = graph_outputs.vout
)`

interface MapRow extends OutpointRow {
  map_step: unknown
  map_length: unknown
  merged_length: unknown
}

/** The MAP of a database. */
export function mapsIn(reader: SqlReader): Maps {
  return {
    ...chunksIn(reader),
    async latestMaps({ lineage, from, to, limit }) {
      const rows: MapRow[] = await reader.all(
        `select txid, vout, map_step, map_length, merged_length from graph_outputs
         where lineage_txid = ? and lineage_vout = ? and map_step between ? and ? and ${UNBLOCKED}
         order by map_step desc limit ?`,
        [...lineage, from, to, limit],
      )
      const last = rows.length < limit ? undefined : rows.at(-1)
      return { parts: rows.map(mapPartOf), next: last && Number(last.map_step) - 1 }
    },
  }
}

/** Leaves out blocked outputs. */
async function unblocked<Row extends OutpointRow>(reader: SqlReader, outputs: Row[]): Promise<Row[]> {
  const outpoints = outputs.map(outpointOf)
  const found: OutpointRow[] = await reader.all(
    `select txid, vout from graph_blocked where ${anyOutpoint(outpoints)}`,
    outpointValues(outpoints),
  )
  const blocked = new Set(found.map((row) => formatOutpoint(outpointOf(row))))
  return outputs.filter((output) => !blocked.has(formatOutpoint(outpointOf(output))))
}

/** See {@link Streams}. Each statement looks up the output's place, too. */
const PAGES: Record<Direction, string> = {
  forward: pageOf('>= (select step from place) + ?', 'asc'),
  backward: pageOf('<= (select step from place) - ?', 'desc'),
}

// Not a join with the place: MariaDB would sort the steps then, though an index has them in order.
function pageOf(reach: string, order: 'asc' | 'desc'): string {
  return `with place as (select lineage_txid, lineage_vout, step from graph_outputs where txid = ? and vout = ?)
    select txid, vout, satoshis, content_sha256, content_type, content_length, step - (select step from place) as away
    from graph_outputs where lineage_txid = (select lineage_txid from place)
      and lineage_vout = (select lineage_vout from place) and step ${reach}
    order by step ${order} limit ?`
}

/** The streams of a database. */
function streamRowsIn(reader: SqlReader): Streams {
  return {
    async streamPage({ outpoint, direction, from, limit }) {
      const rows = await reader.all(PAGES[direction], [...outpointPair(outpoint), from, limit])
      return rows.map((row) => ({ ...row, away: Number(row.away) }))
    },
  }
}

/** The lookups of reads, as each dialect does them best. */
export function rowsIn(knex: Knex, reader: SqlReader): Lineages & Maps & Streams {
  const lineages = isMysql(knex) ? mysqlLineagesIn(reader) : lineagesIn(reader)
  return { ...lineages, ...mapsIn(reader), ...streamRowsIn(reader) }
}
