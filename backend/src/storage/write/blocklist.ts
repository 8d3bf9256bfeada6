import type { BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../protocol/outpoint.js'
import { blockedRow } from '../rows/record-rows.js'
import type { GraphTables } from './graph-tables.js'
import { indexAttributes, tipsOf } from './index-attributes.js'
import { writeMapSnapshots } from './map-snapshots.js'

/** See `BlocklistWriter.block`. */
export async function writeBlocked(tables: GraphTables, record: BlockedRecord): Promise<BlockedRecord> {
  const written = await tables.transactions.setBlocked(record)
  await followSaying(tables, record)
  return written
}

/** See `BlocklistWriter.unblock`. */
export async function writeUnblocked(tables: GraphTables, subject: BlockedSubject): Promise<boolean> {
  const wasBlocked = await tables.transactions.deleteBlocked(subject)
  await followSaying(tables, subject)
  return wasBlocked
}

/** Blocks an output that the engine lets go of; what the operator said of it before stays. */
export async function writeEviction(
  tables: GraphTables,
  { outpoint, since }: { outpoint: Outpoint; since: number },
): Promise<BlockedSubject> {
  const subject: BlockedSubject = { kind: 'outpoint', value: formatOutpoint(outpoint) }
  await tables.transactions.insertNew('graph_blocked', [blockedRow({ ...subject, reason: 'evicted', since })])
  await followSaying(tables, subject)
  return subject
}

/**
 * Makes what is merged along an ordinal, and what it is found by, follow whether one of its outputs is blocked: nothing
 * that this one said is said of the ordinal further on.
 */
async function followSaying(tables: GraphTables, { kind, value }: BlockedSubject): Promise<void> {
  if (kind !== 'outpoint') return
  const [stood] = await tables.outputs.stepsOf([parseOutpoint(value)])
  if (stood === undefined) return
  const tips = await tipsOf(tables, [stood.lineage])
  await writeMapSnapshots(tables, [stood], tips)
  await indexAttributes(tables, { changes: [{ lineage: stood.lineage, from: 0 }], spent: [], tips })
}
