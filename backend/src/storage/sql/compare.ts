import type { ComparedPart } from '../../graph/upkeep.js'
import { TOPICS } from '../../protocol/profile.js'
import { hashColumn, hexOf, outpointOf } from './columns.js'
import { anyOf, type SqlReader, type SqlValue } from './sql-reader.js'

/**
 * Whether topics and index agree, a part of the txids at a time. Where each output that a topic holds is found in the
 * index, and the index has no more of them, they are the same: that takes one look into an index of the database for an
 * output, and counts.
 */

/** About how many admissions a part has: few enough to be compared within some milliseconds. */
const PART = 2000

/** What the outputs of a topic are in the index, and in what silent transactions would say: tables, and kinds of facts. */
interface Side {
  topic: string
  tables: string[]
  kinds: string[]
}

const SIDES: Side[] = [
  { topic: TOPICS.ordinals, tables: ['graph_outputs'], kinds: ['output'] },
  { topic: TOPICS.names, tables: ['graph_nodes', 'graph_names'], kinds: ['node', 'name'] },
]

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
    `select txid from graph_admissions where txid > ? order by txid limit 1 offset ${PART}`,
    [from],
  )
  const upTo = last && hexOf(last.txid)
  const part: Part = [from, upTo === undefined ? END : hashColumn(upTo)]
  const found: ComparedPart = { upTo, missing: [], extra: 0, lost: await lostIn(reader, part) }
  const admitted = await admittedIn(reader, part)
  for (const side of SIDES) {
    const held = admitted.get(side.topic) ?? 0
    const missing = held === 0 ? [] : await missingIn(reader, side, part)
    found.missing.push(...missing)
    found.extra += (await shownIn(reader, side, part)) - (held - missing.length)
  }
  return found
}

async function missingIn(
  reader: SqlReader,
  { topic, tables, kinds }: Side,
  part: Part,
): Promise<ComparedPart['missing']> {
  const shown = [
    ...tables.map((table) => `select 1 from ${table} as shown where`),
    `select 1 from ${SILENT} as shown where kind in (${anyOf(kinds)}) and`,
  ]
  const absent = shown.map(
    (select) => `not exists (${select} shown.txid = admissions.txid and shown.vout = admissions.vout)`,
  )
  const rows = await reader.all(
    `select txid, vout from graph_admissions as admissions
     where ${within('admissions')} and ${isOf('topic')} and ${absent.join(' and ')}`,
    [...part, topic, ...kinds],
  )
  return rows.map((row) => ({ topic, outpoint: outpointOf(row) }))
}

/** How many outputs each topic holds. */
async function admittedIn(reader: SqlReader, part: Part): Promise<Map<string, number>> {
  const sums = SIDES.map((_, side) => `sum(case when topic = ? then 1 else 0 end) as side${side}`)
  const row = await reader.first(
    `select ${sums.join(', ')} from graph_admissions where ${within('graph_admissions')}`,
    [...SIDES.map(({ topic }) => topic), ...part],
  )
  return new Map(SIDES.map(({ topic }, side) => [topic, Number(row?.[`side${side}`] ?? 0)]))
}

/** How many outputs of a topic the index has, and what is said silently. */
async function shownIn(reader: SqlReader, { tables, kinds }: Side, part: Part): Promise<number> {
  const silent = `${SILENT} where ${within(SILENT)} and kind in (${anyOf(kinds)})`
  let shown = await count(reader, silent, [...part, ...kinds])
  for (const table of tables) shown += await count(reader, `${table} where ${within(table)}`, part)
  return shown
}

async function count(reader: SqlReader, from: string, values: SqlValue[]): Promise<number> {
  const row = await reader.first(`select count(*) as found from ${from}`, values)
  return Number(row?.found)
}

/** The transactions that are done for a topic, without their bytes. */
async function lostIn(reader: SqlReader, part: Part): Promise<string[]> {
  const rows = await reader.all(
    `select distinct txid from graph_applied as applied where ${within('applied')} and not exists (
       select 1 from graph_pieces as pieces where pieces.owner = applied.txid and pieces.position = 0
     )`,
    part,
  )
  return rows.map(({ txid }) => hexOf(txid))
}
