import type { BlockedRecord, BlockedSubject } from '../../graph/blocked.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../protocol/outpoint.js'
import { blockedRow } from '../rows.js'
import { stepsOf } from './lineage.js'
import { keepMapStates } from './map-states.js'
import type { PendingDocuments } from './pending-documents.js'
import { keepTraits } from './traits.js'

/** See `BlockedWriter.block`. */
export async function writeBlocked(pending: PendingDocuments, record: BlockedRecord): Promise<BlockedRecord> {
  const { kind, value, reason } = record
  await pending.insertNew('graph_blocked', [blockedRow(record)])
  await pending.update('graph_blocked', { kind, value }, { reason })
  await followSaying(pending, record)
  const { since } = await pending.first('graph_blocked', { kind, value })
  return { kind, value, reason, since }
}

/** See `BlockedWriter.unblock`. */
export async function writeUnblocked(
  pending: PendingDocuments,
  { kind, value }: BlockedSubject,
): Promise<boolean> {
  const wasBlocked = (await pending.first('graph_blocked', { kind, value })) !== undefined
  await pending.delete('graph_blocked', { kind, value })
  await followSaying(pending, { kind, value })
  return wasBlocked
}

/** Blocks an output that the engine lets go of; what the operator said of it before stays. */
export async function writeEviction(
  pending: PendingDocuments,
  { outpoint, since }: { outpoint: Outpoint; since: number },
): Promise<BlockedSubject> {
  const subject: BlockedSubject = { kind: 'outpoint', value: formatOutpoint(outpoint) }
  await pending.insertNew('graph_blocked', [blockedRow({ ...subject, reason: 'evicted', since })])
  await followSaying(pending, subject)
  return subject
}

/**
 * Makes what is merged along an ordinal, and what it is found by, follow whether one of its outputs is blocked: nothing
 * that this one said is said of the ordinal further on.
 */
async function followSaying(pending: PendingDocuments, { kind, value }: BlockedSubject): Promise<void> {
  if (kind !== 'outpoint') return
  const [stood] = await stepsOf(pending, [parseOutpoint(value)])
  if (stood === undefined) return
  await keepMapStates(pending, [stood])
  await keepTraits(pending, { changes: [{ lineage: stood.lineage, from: 0 }], spent: [] })
}
