import type { ComparedPart } from '../../graph/index-maintenance.js'
import { COMPARED_PART, COMPARED_SIDES, type ComparedSide } from '../rebuild/derived-tables.js'
import { hashColumn, hexOf, outpointOf } from '../rows/columns.js'
import { anyOf, type SqlReader, type SqlValue } from './reader.js'

/**
 * Whether topics and index agree, a part of the txids at a time. Where each output that a topic holds is found in the
 * index, and the index has no more of them, they are the same: that takes one look into an index of the database for an
 * output, and counts.
 */

const SILENT = 'graph_silent_facts'
/** Above every txid. */
const END = Buffer.alloc(33, 0xff)

type Part = [after: Buffer, upTo: Buffer]

/** The rows of a table that are in a part. */
const within = (table: string): string => `${table}.txid > ? and ${table}.txid <= ?`

/** A condition that no index is chosen for: the one for txids finds a part, and another all there is of a topic. */
const isOf = (column: string): string => `case when ${column} = ? then 1 else 0 end = 1`

/** Compares the part that comes after a txid; the first, where none is given. */
export async function comparePart(reader: SqlReader, after: string | undefined): Promise<ComparedPart> {
  const from = hashColumn(after ?? '')
  const last = await reader.first(
    `select txid from graph_admissions where txid > ? order by txid limit 1 offset ${COMPARED_PART}`,
    [from],
  )
  const upTo = last && hexOf(last.txid)
  const part: Part = [from, upTo === undefined ? END : hashColumn(upTo)]
  const found: ComparedPart = { upTo, missing: [], extra: 0, lost: await lostIn(reader, part) }
  for (const side of COMPARED_SIDES) {
    const { held, absent } = await admittedIn(reader, side, part)
    const missing = absent === 0 ? [] : await missingIn(reader, side, part)
    found.missing.push(...missing)
    found.extra += (await shownIn(reader, side, part)) - (held - missing.length)
  }
  return found
}

/**
 * How many outputs a topic holds, and how many of them no table of the index has: most often none, told in one pass. The
 * first table has each output once, so that joining it doubles none.
 */
async function admittedIn(
  reader: SqlReader,
  { topic, tables: [first, ...others] }: ComparedSide,
  part: Part,
): Promise<{ held: number; absent: number }> {
  const isAbsent = ['own.txid is null', ...others.map((table) => notIn(table))].join(' and ')
  const row = await reader.first(
    `select count(*) as held, sum(case when ${isAbsent} then 1 else 0 end) as absent
     from graph_admissions as admissions
     left join ${first} as own on own.txid = admissions.txid and own.vout = admissions.vout${first === 'graph_outputs' ? ' and own.carrier = 0' : ''}
     where ${within('admissions')} and ${isOf('admissions.topic')}`,
    [...part, topic],
  )
  return { held: Number(row?.held ?? 0), absent: Number(row?.absent ?? 0) }
}

/** Of an admission: that a table does not have its output. */
function notIn(table: string, condition = ''): string {
  return `not exists (
    select 1 from ${table} as shown where ${condition} ${table === 'graph_outputs' ? 'shown.carrier = 0 and' : ''}
    shown.txid = admissions.txid and shown.vout = admissions.vout
  )`
}

async function missingIn(
  reader: SqlReader,
  { topic, tables, kinds }: ComparedSide,
  part: Part,
): Promise<ComparedPart['missing']> {
  const absent = [...tables.map((table) => notIn(table)), notIn(SILENT, `kind in (${anyOf(kinds)}) and`)]
  const rows = await reader.all(
    `select txid, vout from graph_admissions as admissions
     where ${within('admissions')} and ${isOf('topic')} and ${absent.join(' and ')}`,
    [...part, topic, ...kinds],
  )
  return rows.map((row) => ({ topic, outpoint: outpointOf(row) }))
}

/** How many outputs of a topic the index has, and what is said silently. */
async function shownIn(reader: SqlReader, { tables, kinds }: ComparedSide, part: Part): Promise<number> {
  const silent = `${SILENT} where ${within(SILENT)} and kind in (${anyOf(kinds)})`
  let shown = await count(reader, silent, [...part, ...kinds])
  for (const table of tables) {
    const admitted = table === 'graph_outputs' ? ' and carrier = 0' : ''
    shown += await count(reader, `${table} where ${within(table)}${admitted}`, part)
  }
  return shown
}

async function count(reader: SqlReader, from: string, values: SqlValue[]): Promise<number> {
  const row = await reader.first(`select count(*) as found from ${from}`, values)
  return Number(row?.found)
}

/** The transactions that are done for a topic, without their bytes. */
async function lostIn(reader: SqlReader, part: Part): Promise<string[]> {
  const rows = await reader.all(
    `select applied.txid from graph_applied as applied
     left join graph_pieces as pieces on pieces.owner = applied.txid and pieces.position = 0
     where ${within('applied')} and pieces.owner is null`,
    part,
  )
  return [...new Set(rows.map(({ txid }) => hexOf(txid)))]
}
