import type { Knex } from 'knex'
import { createTable } from './create-table.js'

/** Work that one write leaves for later writes. */
export const backlog = {
  name: '006-backlog',

  async up(knex: Knex): Promise<void> {
    await createTable(knex, 'graph_backlog', (table) => {
      table.string('kind', 10).notNullable()
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.primary(['kind', 'txid', 'vout'])
    })
  },

  async down(knex: Knex): Promise<void> {
    await knex.schema.dropTableIfExists('graph_backlog')
  },
}
