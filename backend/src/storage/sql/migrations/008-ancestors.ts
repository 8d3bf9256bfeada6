import type { Knex } from 'knex'
import { insertNew, knexWriter } from '../database.js'
import { createTable } from './create-table.js'

/** The queue of missing ancestors, and keys of incomplete lineages that do not depend on their first output. */
export const ancestors = {
  name: '008-ancestors',

  async up(knex: Knex): Promise<void> {
    await createTable(knex, 'graph_ancestors', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.boolean('hole').notNullable()
      table.bigInteger('due').notNullable()
      table.bigInteger('arrival').notNullable()
      table.integer('tries').unsigned().notNullable()
      table.bigInteger('transactions').unsigned().notNullable()
      table.bigInteger('bytes').unsigned().notNullable()
      table.primary(['txid', 'vout'])
      table.index(['hole', 'due', 'arrival'])
    })
    // Incomplete lineages were identified by their first output before.
    if ((await knex('graph_transactions').first('txid')) !== undefined)
      await insertNew(knexWriter(knex), 'graph_settings', [{ name: 'reindex', value: 'needed' }])
  },

  async down(knex: Knex): Promise<void> {
    await knex.schema.dropTableIfExists('graph_ancestors')
  },
}
