import type { BlockedQuery, BlockedRecord, BlockedSubject } from '../../graph/blocked.js'
import type { Doc, Documents, Filter } from './documents.js'

/** See `BlockedReader.blockedPage`. */
export async function blockedPage(
  documents: Documents,
  { kind, after, limit }: BlockedQuery,
): Promise<BlockedRecord[]> {
  const behind: Filter[] = after
    ? [
        { kind: { $gte: after.kind } },
        { $or: [{ kind: { $gt: after.kind } }, { value: { $gt: after.value } }] },
      ]
    : []
  const docs = await documents.all(
    'graph_blocked',
    { ...(kind && { kind }), ...(behind.length > 0 && { $and: behind }) },
    { sort: { kind: 1, value: 1 }, limit },
  )
  return docs.map(blockedOf)
}

/** All that is blocked. */
export async function allBlocked(documents: Documents): Promise<BlockedSubject[]> {
  return await documents.all('graph_blocked', {}, { fields: ['kind', 'value'] })
}

export function blockedOf({ kind, value, reason, since }: Doc): BlockedRecord {
  return { kind, value, reason, since }
}
