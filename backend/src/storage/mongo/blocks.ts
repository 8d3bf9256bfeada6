import type { Block } from '../../graph/records.js'
import { hexOf } from '../rows/columns.js'
import type { Doc, Documents, Filter } from './documents.js'

/** A block may hold any number of transactions: no more of them are looked at to come behind it. */
const PAGE = 500

/** The blocks that the kept proofs lead to, between two heights, both included: highest first, by root where heights are the same. */
export async function blocksIn(
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
