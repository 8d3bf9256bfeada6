import type { Knex } from 'knex'
import { hasIndex } from './create-table.js'

const TABLE = 'graph_transactions'
const BLOCK = ['height', 'merkle_root']
const BLOCK_INDEX = 'graph_transactions_height_merkle_root_index'
const ORDERED = [...BLOCK, 'txid']
const ORDERED_INDEX = 'graph_transactions_height_merkle_root_txid_index'

/** The transactions of a block in order, and so the unproven ones, however many proven ones are between them. */
export const unproven = {
  name: '009-unproven',

  async up(knex: Knex): Promise<void> {
    await replaceIndex(knex, {
      from: { columns: BLOCK, name: BLOCK_INDEX },
      to: { columns: ORDERED, name: ORDERED_INDEX },
    })
  },

  async down(knex: Knex): Promise<void> {
    await replaceIndex(knex, {
      from: { columns: ORDERED, name: ORDERED_INDEX },
      to: { columns: BLOCK, name: BLOCK_INDEX },
    })
  },
}

interface Index {
  columns: string[]
  name: string
}

/** The other lookup service of the host may have been first. */
async function replaceIndex(knex: Knex, { from, to }: { from: Index; to: Index }): Promise<void> {
  if (!(await knex.schema.hasTable(TABLE))) return
  const [hasFrom, hasTo] = [await hasIndex(knex, from.name), await hasIndex(knex, to.name)]
  await knex.schema.alterTable(TABLE, (table) => {
    if (!hasTo) table.index(to.columns, to.name)
    if (hasFrom) table.dropIndex(from.columns, from.name)
  })
}
