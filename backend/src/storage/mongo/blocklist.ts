import type { BlockedQuery, BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import type { Doc } from './collections.js'
import type { Documents, Filter } from './documents.js'

/** See `BlocklistStore.page`. */
export async function blockedPage(
  documents: Documents,
  { kind, after, limit }: BlockedQuery,
): Promise<BlockedRecord[]> {
  const page = async (filter: Filter, size: number): Promise<BlockedRecord[]> => {
    const docs = await documents.all('graph_blocked', filter, { sort: { kind: 1, value: 1 }, limit: size })
    return docs.map(blockedOf)
  }
  if (after === undefined) return await page(kind ? { kind } : {}, limit)
  // The remaining subjects of the same kind, then the kinds after it: each is one range of the index.
  const isOfKind = kind === undefined || kind === after.kind
  const same = isOfKind ? await page({ kind: after.kind, value: { $gt: after.value } }, limit) : []
  if (same.length === limit || kind === after.kind) return same
  const further = await page({ kind: { $gt: after.kind, ...(kind && { $eq: kind }) } }, limit - same.length)
  return [...same, ...further]
}

/** The whole blocklist. */
export async function allBlocked(documents: Documents): Promise<BlockedSubject[]> {
  return await documents.all('graph_blocked', {}, { fields: ['kind', 'value'] })
}

function blockedOf({ kind, value, reason, since }: Doc): BlockedRecord {
  return { kind, value, reason, since }
}
