import type { Knex } from 'knex'
import { isMysql } from '../database.js'

const TABLE = 'graph_transactions'
const COLUMNS = ['height', 'txid']
const INDEX = 'graph_transactions_height_txid_index'

/** Unproven transactions in order, however many proven ones are between them. */
export const unproven = {
  name: '009-unproven',

  async up(knex: Knex): Promise<void> {
    // As with `down`, the other lookup service of the host may have been first.
    if (await hasIndex(knex)) return
    await knex.schema.alterTable(TABLE, (table) => {
      table.index(COLUMNS, INDEX)
    })
  },

  async down(knex: Knex): Promise<void> {
    if (!(await hasIndex(knex))) return
    await knex.schema.alterTable(TABLE, (table) => {
      table.dropIndex(COLUMNS, INDEX)
    })
  },
}

async function hasIndex(knex: Knex): Promise<boolean> {
  const found = isMysql(knex)
    ? knex('information_schema.statistics').whereRaw('table_schema = database()').where({ index_name: INDEX })
    : knex('sqlite_master').where({ type: 'index', name: INDEX })
  return (await found.first(knex.raw('1'))) !== undefined
}
