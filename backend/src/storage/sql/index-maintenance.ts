import type { Knex } from 'knex'
import type {
  ComparedPart,
  IndexComparison,
  IndexRebuild,
  LoggedTransaction,
  RebuildCheckpoint,
} from '../../graph/index-maintenance.js'
import {
  COMPARED_PART,
  COMPARED_SIDES,
  type ComparedSide,
  DERIVED,
  loggedAfter,
  markOf,
  markText,
  placeOf,
  REBUILD_CHECKPOINT,
  REBUILD_PAGE,
  type TransactionLogRows,
} from '../rebuild/index-maintenance.js'
import { hashColumn, hexOf, outpointColumns, outpointOf, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { rest } from '../write/rest.js'
import {
  anyOf,
  insertNew,
  isMysql,
  knexReader,
  knexWriter,
  type SqlReader,
  type SqlValue,
} from './database.js'
import { exclusiveWrite, holdingLock } from './exclusive-write.js'
import { transactionRecord } from './transactions.js'

/** For how long another process may be at it, in seconds. */
const PATIENCE = 10

/** Compares the index of a database with what topics hold, and empties it for a rebuild. */
export class SqlIndexMaintenance implements IndexComparison, IndexRebuild {
  private readonly writer: Knex
  private readonly reader: SqlReader

  constructor({ writer, reader }: { writer: Knex; reader: SqlReader }) {
    this.writer = writer
    this.reader = reader
  }

  async compare(after: string | undefined): Promise<ComparedPart> {
    if (!isMysql(this.writer)) return await comparePart(this.reader, after)
    // Others may write between two reads: all are of one moment.
    return await this.writer.transaction((trx) => comparePart(knexReader(trx), after), {
      isolationLevel: 'repeatable read',
    })
  }

  async alone(work: () => Promise<void>): Promise<void> {
    await holdingLock(this.writer, { name: 'upkeep', patience: PATIENCE }, work)
  }

  async unadmit(txid: string): Promise<void> {
    await exclusiveWrite(this.writer, async (trx) => {
      for (const table of ['graph_admissions', 'graph_applied'])
        await trx(table)
          .where({ txid: hashColumn(txid) })
          .delete()
    })
  }

  async rebuild(): Promise<RebuildCheckpoint | undefined> {
    return await rebuildCheckpoint(this.reader)
  }

  async setRebuildCheckpoint(mark: RebuildCheckpoint | undefined): Promise<void> {
    await exclusiveWrite(this.writer, (trx) => writeRebuildCheckpoint(trx, mark))
  }

  async empty(): Promise<void> {
    await emptyIndex(this.writer)
  }

  transactionLog(after: string): AsyncIterable<LoggedTransaction> {
    return loggedAfter(transactionLogIn(this.reader), after)
  }

  async transactionsLeft(after: string): Promise<number> {
    return await transactionsLeft(this.reader, after)
  }
}

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

export async function rebuildCheckpoint(reader: SqlReader): Promise<RebuildCheckpoint | undefined> {
  const row = await reader.first('select value from graph_settings where name = ?', [REBUILD_CHECKPOINT])
  return row && markOf(String(row.value))
}

export async function writeRebuildCheckpoint(knex: Knex, mark: RebuildCheckpoint | undefined): Promise<void> {
  const settings = knex('graph_settings')
  if (mark === undefined) {
    await settings.where({ name: REBUILD_CHECKPOINT }).delete()
    return
  }
  await settings
    .insert({ name: REBUILD_CHECKPOINT, value: markText(mark) })
    .onConflict(['name'])
    .merge(['value'])
}

/**
 * Empties the index, a little at a time: whoever sees it half empty sees the mark, too, and empties it again.
 *
 * What a transaction spends whose bytes are not here is known from a notice alone, and stays.
 */
export async function emptyIndex(knex: Knex): Promise<void> {
  for (const table of DERIVED) await emptyTable(knex, table)
  await exclusiveWrite(knex, async (trx) => {
    const silent = await trx('graph_silent_spends').select('txid', 'vout', 'spender')
    await insertNew(
      knexWriter(trx),
      'graph_spends',
      silent.map((row) => ({ ...outpointColumns(outpointOf(row)), spender: hashColumn(hexOf(row.spender)) })),
    )
    await trx('graph_silent_spends').delete()
  })
  await deleteByOwner(knex, {
    table: 'graph_spends',
    column: 'spender',
    goes: (owners) => withBytes(knex, owners),
  })
  await deleteByOwner(knex, {
    table: 'graph_pieces',
    column: 'owner',
    goes: (owners) => derivedOwners(knex, owners),
  })
  // Where each stands is decided anew; when it came is not, nor what proves it.
  await knex('graph_transactions').update({ mined: null, silent: false })
}

async function emptyTable(knex: Knex, table: string): Promise<void> {
  // One statement where the engine can drop all pages at once.
  await knex(table).delete()
  await rest()
}

/** Deletes the rows of those owners that `goes` picks, some at a time in order. */
async function deleteByOwner(
  knex: Knex,
  options: { table: string; column: string; goes: (owners: Buffer[]) => Promise<Buffer[]> },
): Promise<void> {
  const { table, column, goes } = options
  for (let after: Buffer = Buffer.alloc(0); ; ) {
    const rows = await knex(table)
      .distinct(column)
      .where(column, '>', after)
      .orderBy(column)
      .limit(REBUILD_PAGE)
    const owners: Buffer[] = rows.map((row) => hashColumn(hexOf(row[column])))
    const last = owners.at(-1)
    if (last === undefined) return
    for (const part of parts(await goes(owners), ROWS_A_STATEMENT))
      await knex(table).whereIn(column, part).delete()
    await rest()
    after = last
  }
}

async function withBytes(knex: Knex, txids: Buffer[]): Promise<Buffer[]> {
  const rows = await knex('graph_pieces').whereIn('owner', txids).where({ position: 0 }).select('owner')
  return rows.map(({ owner }) => hashColumn(hexOf(owner)))
}

/** Those that own neither a raw transaction nor the BEEF of a note. */
async function derivedOwners(knex: Knex, owners: Buffer[]): Promise<Buffer[]> {
  const kept = new Set<string>()
  const transactions = await knex('graph_transactions').whereIn('txid', owners).select('txid')
  for (const { txid } of transactions) kept.add(hexOf(txid))
  const notes = await knex('graph_hook_notes').whereIn('beef', owners).select('beef')
  for (const { beef } of notes) kept.add(hexOf(beef))
  return owners.filter((owner) => !kept.has(hexOf(owner)))
}

/** With a lower bound for `arrival` alone: without it, no engine seeks the place, and each page reads all that is left. */
const BEHIND = 'arrival >= ? and (arrival > ? or txid > ?)'

function behind(place: string): [arrival: number, again: number, txid: Buffer] {
  const { arrival, txid } = placeOf(place)
  return [arrival, arrival, txid]
}

/** The transactions of a database in the order in which they came. */
export function transactionLogIn(reader: SqlReader): TransactionLogRows {
  return {
    page: (place, limit) =>
      reader.all(
        `select txid, arrival from graph_transactions where ${BEHIND} order by arrival, txid limit ${limit}`,
        behind(place),
      ),
    admissions: (txids) =>
      reader.all(
        `select txid, vout, topic from graph_admissions where txid in (${anyOf(txids)}) order by txid, vout, topic`,
        txids,
      ),
    transaction: (txid) => transactionRecord(reader, txid),
  }
}

export async function transactionsLeft(reader: SqlReader, after: string): Promise<number> {
  const row = await reader.first(
    `select count(*) as found from graph_transactions where ${BEHIND}`,
    behind(after),
  )
  return Number(row?.found)
}
