import type { Knex } from 'knex'
import { createTable } from './create-table.js'

/** Failed hooks of lookup services. */
export const hookOutbox = {
  name: '004-hook-notes',

  async up(knex: Knex): Promise<void> {
    await createTable(knex, 'graph_hook_notes', (table) => {
      table.binary('subject', 32).notNullable().primary()
      table.string('service', 64).notNullable()
      table.string('hook', 16).notNullable()
      table.string('topic', 64)
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.binary('spender', 32)
      table.binary('beef', 32)
      table.index(['service', 'subject'])
      table.index(['beef'])
    })
  },

  async down(knex: Knex): Promise<void> {
    await knex.schema.dropTableIfExists('graph_hook_notes')
  },
}
