import type { Knex } from 'knex'
import type {
  BlockedKind,
  BlockedQuery,
  BlockedRecord,
  BlockedSubject,
  BlockedWriter,
} from '../../graph/blocked.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../protocol/outpoint.js'
import { blockedRow } from '../rows.js'
import { insertNew } from './insert-new.js'
import { stepsOf } from './lineage.js'
import { keepMapStates } from './map-states.js'
import type { SqlReader, SqlValue } from './sql-reader.js'
import { keepTraits } from './traits.js'

/** See {@link BlockedWriter.block}. */
export async function writeBlocked(trx: Knex.Transaction, record: BlockedRecord): Promise<BlockedRecord> {
  const { kind, value } = record
  await trx('graph_blocked').insert(blockedRow(record)).onConflict(['kind', 'value']).merge(['reason'])
  await followSaying(trx, record)
  return recordOf(await trx('graph_blocked').where({ kind, value }).first())
}

/** See {@link BlockedWriter.unblock}. */
export async function writeUnblocked(trx: Knex.Transaction, subject: BlockedSubject): Promise<boolean> {
  const { kind, value } = subject
  const count = await trx('graph_blocked').where({ kind, value }).delete()
  await followSaying(trx, subject)
  return count > 0
}

/** Blocks an output that the engine lets go of; what the operator said of it before stays. */
export async function writeEviction(
  trx: Knex.Transaction,
  { outpoint, since }: { outpoint: Outpoint; since: number },
): Promise<BlockedSubject> {
  const subject: BlockedSubject = { kind: 'outpoint', value: formatOutpoint(outpoint) }
  await insertNew(trx, 'graph_blocked', [blockedRow({ ...subject, reason: 'evicted', since })])
  await followSaying(trx, subject)
  return subject
}

/**
 * Makes what is merged along an ordinal, and what it is found by, follow whether one of its outputs is blocked: nothing
 * that this one said is said of the ordinal further on.
 */
async function followSaying(trx: Knex.Transaction, { kind, value }: BlockedSubject): Promise<void> {
  if (kind !== 'outpoint') return
  const [stood] = await stepsOf(trx, [parseOutpoint(value)])
  if (stood === undefined) return
  await keepMapStates(trx, [stood])
  await keepTraits(trx, { changes: [{ lineage: stood.lineage, from: 0 }], spent: [] })
}

/** See `BlockedReader.blockedPage`. */
export async function blockedPage(
  reader: SqlReader,
  { kind, after, limit }: BlockedQuery,
): Promise<BlockedRecord[]> {
  const conditions: string[] = []
  const values: SqlValue[] = []
  if (kind !== undefined) {
    conditions.push('kind = ?')
    values.push(kind)
  }
  if (after !== undefined) {
    conditions.push('kind >= ? and (kind > ? or value > ?)')
    values.push(after.kind, after.kind, after.value)
  }
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const rows = await reader.all(
    `select kind, value, reason, since from graph_blocked ${where} order by kind, value limit ?`,
    [...values, limit],
  )
  return rows.map(recordOf)
}

/** All that is blocked. */
export async function allBlocked(reader: SqlReader): Promise<BlockedSubject[]> {
  return await reader.all('select kind, value from graph_blocked', [])
}

function recordOf(row: { kind: BlockedKind; value: string; reason: string; since: unknown }): BlockedRecord {
  return { kind: row.kind, value: row.value, reason: row.reason, since: Number(row.since) }
}
