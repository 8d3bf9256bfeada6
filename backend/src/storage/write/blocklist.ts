import type { BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../protocol/outpoint.js'
import { blockedRow } from '../rows/record-rows.js'
import type { GraphTables } from './graph-tables.js'
import { indexAttributes, tipsOf } from './index-attributes.js'
import { writeMapSnapshots } from './map-snapshots.js'

/** See `BlocklistStore.add`. */
export async function writeBlocked(tables: GraphTables, record: BlockedRecord): Promise<BlockedRecord> {
  const written = await tables.transactions.setBlocked(record)
  await reindexOrdinal(tables, record)
  return written
}

/** See `BlocklistStore.remove`. */
export async function writeUnblocked(tables: GraphTables, subject: BlockedSubject): Promise<boolean> {
  const wasBlocked = await tables.transactions.deleteBlocked(subject)
  await reindexOrdinal(tables, subject)
  return wasBlocked
}

/** Blocks an output that the engine evicts; an earlier block by the operator keeps its reason. */
export async function writeEviction(
  tables: GraphTables,
  { outpoint, since }: { outpoint: Outpoint; since: number },
): Promise<BlockedSubject> {
  const subject: BlockedSubject = { kind: 'outpoint', value: formatOutpoint(outpoint) }
  await tables.transactions.insertNew('graph_blocked', [blockedRow({ ...subject, reason: 'evicted', since })])
  await reindexOrdinal(tables, subject)
  return subject
}

/** Updates an ordinal's MAP snapshots and attributes: the MAP of a blocked output does not count at later steps. */
async function reindexOrdinal(tables: GraphTables, { kind, value }: BlockedSubject): Promise<void> {
  if (kind !== 'outpoint') return
  const [place] = await tables.outputs.stepsOf([parseOutpoint(value)])
  if (place === undefined) return
  const tips = await tipsOf(tables, [place.lineage])
  await writeMapSnapshots(tables, [place], tips)
  await indexAttributes(tables, { changes: [{ lineage: place.lineage, from: 0 }], spent: [], tips })
}
