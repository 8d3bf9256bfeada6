import type { Knex } from 'knex'
import { hasIndex } from './create-table.js'

const COLUMNS = ['parent_txid', 'parent_vout']
const INDEX = 'graph_outputs_parent_txid_parent_vout_index'

/** Finds the outputs that name an output as their parent. */
export const claimedParents = {
  name: '013-claimed-parents',

  async up(knex: Knex): Promise<void> {
    if (await hasIndex(knex, INDEX)) return
    await knex.schema.alterTable('graph_outputs', (table) => void table.index(COLUMNS, INDEX))
  },

  async down(knex: Knex): Promise<void> {
    // The other lookup service of a host may have been first.
    if (await hasIndex(knex, INDEX))
      await knex.schema.alterTable('graph_outputs', (table) => void table.dropIndex(COLUMNS, INDEX))
  },
}
