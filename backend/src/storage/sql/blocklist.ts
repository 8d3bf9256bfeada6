import type { Knex } from 'knex'
import type { BlockedKind, BlockedQuery, BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import { blockedRow } from '../rows/record-rows.js'
import type { SqlReader, SqlValue } from './database.js'

/** See `TransactionTables.setBlocked`. */
export async function setBlocked(trx: Knex.Transaction, record: BlockedRecord): Promise<BlockedRecord> {
  const { kind, value } = record
  await trx('graph_blocked').insert(blockedRow(record)).onConflict(['kind', 'value']).merge(['reason'])
  return recordOf(await trx('graph_blocked').where({ kind, value }).first())
}

/** See `TransactionTables.deleteBlocked`. */
export async function deleteBlocked(
  trx: Knex.Transaction,
  { kind, value }: BlockedSubject,
): Promise<boolean> {
  return (await trx('graph_blocked').where({ kind, value }).delete()) > 0
}

/** See `BlocklistStore.page`. */
export async function blockedPage(
  reader: SqlReader,
  { kind, after, limit }: BlockedQuery,
): Promise<BlockedRecord[]> {
  const page = async (conditions: string[], values: SqlValue[], rows: number): Promise<BlockedRecord[]> => {
    const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
    const found = await reader.all(
      `select kind, value, reason, since from graph_blocked ${where} order by kind, value limit ?`,
      [...values, rows],
    )
    return found.map(recordOf)
  }
  if (after === undefined) return await page(kind ? ['kind = ?'] : [], kind ? [kind] : [], limit)
  // The remaining subjects of the same kind, then the kinds after it: each is one range of the key.
  const isOfKind = kind === undefined || kind === after.kind
  const same = isOfKind ? await page(['kind = ?', 'value > ?'], [after.kind, after.value], limit) : []
  if (same.length === limit || kind === after.kind) return same
  const behind = kind === undefined ? ['kind > ?'] : ['kind > ?', 'kind = ?']
  const further = await page(
    behind,
    kind === undefined ? [after.kind] : [after.kind, kind],
    limit - same.length,
  )
  return [...same, ...further]
}

/** The whole blocklist. */
export async function allBlocked(reader: SqlReader): Promise<BlockedSubject[]> {
  return await reader.all('select kind, value from graph_blocked', [])
}

function recordOf(row: { kind: BlockedKind; value: string; reason: string; since: unknown }): BlockedRecord {
  return { kind: row.kind, value: row.value, reason: row.reason, since: Number(row.since) }
}
