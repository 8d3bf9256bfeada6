import type { Knex } from 'knex'
import { anyBytes, createTable } from './create-table.js'

/** The host's own chain of block headers. */
export const headers = {
  name: '007-headers',

  async up(knex: Knex): Promise<void> {
    await createTable(knex, 'graph_headers', (table) => {
      table.integer('position').unsigned().notNullable().primary()
      table.integer('height').unsigned().notNullable()
      table.specificType('headers', anyBytes(knex)).notNullable()
    })
  },

  async down(knex: Knex): Promise<void> {
    await knex.schema.dropTableIfExists('graph_headers')
  },
}
