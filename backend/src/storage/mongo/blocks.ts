import type { BlocksReader } from '../../graph/graph-store.js'
import type { Block, SpendRecord } from '../../graph/records.js'
import { hexOf } from '../rows/columns.js'
import type { Doc, Documents, Filter, FindOptions } from './documents.js'
import { conflictsOf, statuses } from './transaction-status.js'

/** A block may hold any number of transactions: no more of them are looked at to come behind it. */
const PAGE = 500

/** The blocks of a store. */
export function blocksIn(documents: Documents): BlocksReader {
  return {
    from: (query) => readBlocks(documents, query),
    async lastHeight() {
      const highest: FindOptions = { sort: { height: -1 }, fields: ['height'] }
      const last = await documents.first('graph_transactions', { height: { $gte: 0 } }, highest)
      return last?.height ?? 0
    },
    ofConflicts: (spends) => conflictingBlocks(documents, spends),
  }
}

/** The blocks that stored proofs lead to, between two heights, both included: highest first, by root where heights are the same. */
export async function readBlocks(
  documents: Documents,
  { from, to }: { from: number; to?: number },
): Promise<Block[]> {
  const found = new Map<string, Block>()
  const above = { $gte: from, ...(to !== undefined && { $lte: to }) }
  for (let filter: Filter = { height: above }; ; ) {
    const docs = await documents.all('graph_transactions', filter, {
      sort: { height: -1, merkle_root: -1 },
      limit: PAGE,
      fields: ['height', 'merkle_root'],
    })
    for (const { height, merkle_root } of docs) {
      const root = hexOf(merkle_root)
      found.set(`${height} ${root}`, { height, root })
    }
    const last = docs.at(-1)
    if (last === undefined || docs.length < PAGE) break
    filter = behind(last, from)
  }
  return [...found.values()].sort((a, b) => b.height - a.height || (a.root < b.root ? -1 : 1))
}

/** The transactions of the blocks that come behind one, whatever else is in that. */
function behind({ height, merkle_root }: Doc, from: number): Filter {
  return {
    height: { $gte: from, $lte: height },
    $or: [{ height: { $lt: height } }, { merkle_root: { $lt: merkle_root } }],
  }
}

/** See `BlocksReader.ofConflicts`. */
async function conflictingBlocks(documents: Documents, told: SpendRecord[]): Promise<Block[]> {
  const rivals = await statuses(documents, await conflictsOf(documents, told))
  const heights = new Set(rivals.flatMap(({ mined }) => mined ?? []))
  const found: Block[] = []
  for (const height of heights) found.push(...(await readBlocks(documents, { from: height, to: height })))
  return found
}
