import type { Knex } from 'knex'
import type { RebuildCheckpoint } from '../../graph/index-maintenance.js'
import { markOf, markText, placeOf, REBUILD_CHECKPOINT } from '../rebuild/checkpoint.js'
import { DERIVED, REBUILD_PAGE } from '../rebuild/derived-tables.js'
import type { TransactionLogRows } from '../rebuild/transaction-log.js'
import { hashColumn, hexOf, outpointColumns, outpointOf, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { rest } from '../write/rest.js'
import { exclusiveWrite } from './exclusive-write.js'
import { insertNew } from './insert-new.js'
import { anyOf, knexWriter, type SqlReader } from './reader.js'
import { transactionRecord } from './transactions.js'

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
