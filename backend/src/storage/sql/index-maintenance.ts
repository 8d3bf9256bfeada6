import type { Knex } from 'knex'
import type {
  ComparedPart,
  IndexComparison,
  IndexRebuild,
  LoggedTransaction,
  RebuildCheckpoint,
} from '../../graph/index-maintenance.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import {
  COMPARED_PART,
  COMPARED_SIDES,
  type ComparedSide,
  DERIVED,
  formatCheckpoint,
  loggedAfter,
  parseCheckpoint,
  parsePosition,
  REBUILD_CHECKPOINT,
  REBUILD_PAGE,
  type TransactionLogRows,
} from '../rebuild/index-maintenance.js'
import { hashColumn, hexOf, outpointColumns, outpointOf, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
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

/** How long to wait for another process that is doing it, in seconds. */
const PATIENCE = 10

/** Compares the index of a database with the admitted set, and empties it for a rebuild. */
export class SqlIndexMaintenance implements IndexComparison, IndexRebuild {
  private readonly writer: Knex
  private readonly reader: SqlReader

  constructor({ writer, reader }: { writer: Knex; reader: SqlReader }) {
    this.writer = writer
    this.reader = reader
  }

  async compare(after: string | undefined): Promise<ComparedPart> {
    if (!isMysql(this.writer)) return await comparePart(this.reader, after)
    // A snapshot: others may write between two reads.
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

  async setRebuildCheckpoint(checkpoint: RebuildCheckpoint | undefined): Promise<void> {
    await exclusiveWrite(this.writer, (trx) => writeRebuildCheckpoint(trx, checkpoint))
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

const INACTIVE_FACTS = 'graph_silent_facts'
/** Above every txid. */
const END = Buffer.alloc(33, 0xff)

type Part = [after: Buffer, upTo: Buffer]

/** A condition that selects the rows of a part. */
const within = (table: string): string => `${table}.txid > ? and ${table}.txid <= ?`

/** A condition that no index applies to: the index by txid finds a part, one by topic would read the whole topic. */
const isOf = (column: string): string => `case when ${column} = ? then 1 else 0 end = 1`

/**
 * Compares the part after a txid. If the index has every output that a topic holds, and no more in number, they are the
 * same: that takes one index lookup per output, and counts.
 */
async function comparePart(reader: SqlReader, after: string | undefined): Promise<ComparedPart> {
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
    found.extra += (await countIndexed(reader, side, part)) - (held - missing.length)
  }
  return found
}

/**
 * How many outputs a topic holds, and how many of them no table of the index has: usually none. The first table has each
 * output once, so that the join doubles none.
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

/** A condition on an admission: a table does not have its output. */
function notIn(table: string, condition = ''): string {
  return `not exists (
    select 1 from ${table} as entry where ${condition} ${table === 'graph_outputs' ? 'entry.carrier = 0 and' : ''}
    entry.txid = admissions.txid and entry.vout = admissions.vout
  )`
}

async function missingIn(
  reader: SqlReader,
  { topic, tables, kinds }: ComparedSide,
  part: Part,
): Promise<ComparedPart['missing']> {
  const absent = [
    ...tables.map((table) => notIn(table)),
    notIn(INACTIVE_FACTS, `kind in (${anyOf(kinds)}) and`),
  ]
  const rows = await reader.all(
    `select txid, vout from graph_admissions as admissions
     where ${within('admissions')} and ${isOf('topic')} and ${absent.join(' and ')}`,
    [...part, topic, ...kinds],
  )
  return rows.map((row) => ({ topic, outpoint: outpointOf(row) }))
}

/** How many outputs of a topic the index has, including those of inactive transactions. */
async function countIndexed(reader: SqlReader, { tables, kinds }: ComparedSide, part: Part): Promise<number> {
  const inactive = `${INACTIVE_FACTS} where ${within(INACTIVE_FACTS)} and kind in (${anyOf(kinds)})`
  let indexed = await count(reader, inactive, [...part, ...kinds])
  for (const table of tables) {
    const admitted = table === 'graph_outputs' ? ' and carrier = 0' : ''
    indexed += await count(reader, `${table} where ${within(table)}${admitted}`, part)
  }
  return indexed
}

async function count(reader: SqlReader, from: string, values: SqlValue[]): Promise<number> {
  const row = await reader.first(`select count(*) as found from ${from}`, values)
  return Number(row?.found)
}

/** The transactions that are applied to a topic but have no bytes. */
async function lostIn(reader: SqlReader, part: Part): Promise<string[]> {
  const rows = await reader.all(
    `select applied.txid from graph_applied as applied
     left join graph_pieces as chunks on chunks.owner = applied.txid and chunks.position = 0
     where ${within('applied')} and chunks.owner is null`,
    part,
  )
  return [...new Set(rows.map(({ txid }) => hexOf(txid)))]
}

async function rebuildCheckpoint(reader: SqlReader): Promise<RebuildCheckpoint | undefined> {
  const row = await reader.first('select value from graph_settings where name = ?', [REBUILD_CHECKPOINT])
  return row && parseCheckpoint(String(row.value))
}

async function writeRebuildCheckpoint(knex: Knex, checkpoint: RebuildCheckpoint | undefined): Promise<void> {
  const settings = knex('graph_settings')
  if (checkpoint === undefined) {
    await settings.where({ name: REBUILD_CHECKPOINT }).delete()
    return
  }
  await settings
    .insert({ name: REBUILD_CHECKPOINT, value: formatCheckpoint(checkpoint) })
    .onConflict(['name'])
    .merge(['value'])
}

/**
 * Empties the index in steps: a process that finds it half empty also finds the checkpoint, and empties it again.
 *
 * The spends of transactions without bytes stay: nothing else records them.
 */
async function emptyIndex(knex: Knex): Promise<void> {
  for (const table of DERIVED) await emptyTable(knex, table)
  await exclusiveWrite(knex, async (trx) => {
    const inactive = await trx('graph_silent_spends').select('txid', 'vout', 'spender')
    await insertNew(
      knexWriter(trx),
      'graph_spends',
      inactive.map((row) => ({
        ...outpointColumns(outpointOf(row)),
        spender: hashColumn(hexOf(row.spender)),
      })),
    )
    await trx('graph_silent_spends').delete()
  })
  await deleteByOwner(knex, {
    table: 'graph_spends',
    column: 'spender',
    pick: (owners) => withBytes(knex, owners),
  })
  await deleteByOwner(knex, {
    table: 'graph_pieces',
    column: 'owner',
    pick: (owners) => derivedOwners(knex, owners),
  })
  // Statuses are decided again; insertion order and proofs stay.
  await knex('graph_transactions').update({ mined: null, silent: false })
}

async function emptyTable(knex: Knex, table: string): Promise<void> {
  // In one statement: the engine can drop all pages at once.
  await knex(table).delete()
  await yieldBetweenStatements()
}

/** Deletes the rows of the owners that `pick` selects, a page at a time in order. */
async function deleteByOwner(
  knex: Knex,
  options: { table: string; column: string; pick: (owners: Buffer[]) => Promise<Buffer[]> },
): Promise<void> {
  const { table, column, pick } = options
  for (let after: Buffer = Buffer.alloc(0); ; ) {
    const rows = await knex(table)
      .distinct(column)
      .where(column, '>', after)
      .orderBy(column)
      .limit(REBUILD_PAGE)
    const owners: Buffer[] = rows.map((row) => hashColumn(hexOf(row[column])))
    const last = owners.at(-1)
    if (last === undefined) return
    for (const part of parts(await pick(owners), ROWS_A_STATEMENT))
      await knex(table).whereIn(column, part).delete()
    await yieldBetweenStatements()
    after = last
  }
}

async function withBytes(knex: Knex, txids: Buffer[]): Promise<Buffer[]> {
  const rows = await knex('graph_pieces').whereIn('owner', txids).where({ position: 0 }).select('owner')
  return rows.map(({ owner }) => hashColumn(hexOf(owner)))
}

/** Those whose blob is neither a raw transaction nor the BEEF of a failed hook. */
async function derivedOwners(knex: Knex, owners: Buffer[]): Promise<Buffer[]> {
  const kept = new Set<string>()
  const transactions = await knex('graph_transactions').whereIn('txid', owners).select('txid')
  for (const { txid } of transactions) kept.add(hexOf(txid))
  const hooks = await knex('graph_hook_notes').whereIn('beef', owners).select('beef')
  for (const { beef } of hooks) kept.add(hexOf(beef))
  return owners.filter((owner) => !kept.has(hexOf(owner)))
}

/** With a lower bound for `arrival` alone: without it, no engine seeks, and each page reads all that is left. */
const AFTER = 'arrival >= ? and (arrival > ? or txid > ?)'

function valuesOfAfter(position: string): [order: number, again: number, txid: Buffer] {
  const { order, txid } = parsePosition(position)
  return [order, order, txid]
}

/** The transactions of a database in insertion order. */
export function transactionLogIn(reader: SqlReader): TransactionLogRows {
  return {
    page: (position, limit) =>
      reader.all(
        `select txid, arrival from graph_transactions where ${AFTER} order by arrival, txid limit ${limit}`,
        valuesOfAfter(position),
      ),
    admissions: (txids) =>
      reader.all(
        `select txid, vout, topic from graph_admissions where txid in (${anyOf(txids)}) order by txid, vout, topic`,
        txids,
      ),
    transaction: (txid) => transactionRecord(reader, txid),
  }
}

async function transactionsLeft(reader: SqlReader, after: string): Promise<number> {
  const row = await reader.first(
    `select count(*) as found from graph_transactions where ${AFTER}`,
    valuesOfAfter(after),
  )
  return Number(row?.found)
}
