import type { BlocksReader } from '../../graph/graph-store.js'
import type { Block, SpendRecord } from '../../graph/records.js'
import { hexOf, inParts } from '../rows/columns.js'
import { anyOf, type SqlReader } from './reader.js'
import { conflictsOf, statuses } from './transaction-status.js'

/** The blocks of a store. */
export function blocksIn(reader: SqlReader): BlocksReader {
  return {
    from: (query) => blocksFrom(reader, query),
    async lastHeight() {
      const row = await reader.first('select max(height) as height from graph_transactions', [])
      return Number(row?.height ?? 0)
    },
    ofConflicts: (spends) => conflictingBlocks(reader, spends),
  }
}

async function blocksFrom(reader: SqlReader, { from }: { from: number }): Promise<Block[]> {
  const rows = await reader.all(
    'select distinct height, merkle_root from graph_transactions where height >= ? order by height desc, merkle_root',
    [from],
  )
  return rows.map(blockOf)
}

async function conflictingBlocks(reader: SqlReader, spends: SpendRecord[]): Promise<Block[]> {
  const rivals = await statuses(reader, await conflictsOf(reader, spends))
  const heights = [...new Set(rivals.flatMap(({ mined }) => mined ?? []))]
  const rows = await inParts(heights, (part) =>
    reader.all(
      `select distinct height, merkle_root from graph_transactions where height in (${anyOf(part)})`,
      part,
    ),
  )
  return rows.map(blockOf)
}

function blockOf(row: { height: unknown; merkle_root: unknown }): Block {
  return { height: Number(row.height), root: hexOf(row.merkle_root) }
}
