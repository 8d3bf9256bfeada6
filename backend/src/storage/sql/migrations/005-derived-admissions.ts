import type { Knex } from 'knex'
import { insertNew, knexWriter } from '../database.js'
import { anyBytes, createTable } from './create-table.js'

/** Derived admissions: values of inputs, carriers, pending transactions and held submissions. */
export const derivedAdmissions = {
  name: '005-derived-admissions',

  async up(knex: Knex): Promise<void> {
    for (const spends of ['graph_spends', 'graph_silent_spends']) {
      if (await knex.schema.hasColumn(spends, 'satoshis')) continue
      await knex.schema.alterTable(spends, (table) => {
        table.bigInteger('satoshis').unsigned()
      })
    }
    // Coinbases do not spend the outpoint that they name.
    for (const spends of ['graph_spends', 'graph_silent_spends'])
      await knex(spends)
        .where({ txid: Buffer.alloc(32), vout: 0xffffffff })
        .delete()
    if (!(await knex.schema.hasColumn('graph_outputs', 'carrier'))) {
      await knex.schema.alterTable('graph_outputs', (table) => {
        table.boolean('carrier').notNullable().defaultTo(false)
      })
    }
    await createTable(knex, 'graph_pending', (table) => {
      table.binary('txid', 32).notNullable().primary()
      table.boolean('proven').notNullable()
      table.bigInteger('arrival').notNullable()
      table.bigInteger('bytes').unsigned().notNullable()
      table.index(['proven', 'arrival', 'txid'])
    })
    await createTable(knex, 'graph_held', (table) => {
      table.binary('txid', 32).notNullable().primary()
      table.bigInteger('lock_height').unsigned().notNullable()
      table.bigInteger('lock_time').unsigned().notNullable()
      table.specificType('beef', anyBytes(knex)).notNullable()
      table.index(['lock_height', 'lock_time', 'txid'])
    })
    if ((await knex('graph_transactions').first('txid')) !== undefined)
      await insertNew(knexWriter(knex), 'graph_settings', [{ name: 'reindex', value: 'needed' }])
  },

  async down(knex: Knex): Promise<void> {
    await knex.schema.dropTableIfExists('graph_held')
    await knex.schema.dropTableIfExists('graph_pending')
    // The other lookup service of a host may have been first.
    if (!(await knex.schema.hasTable('graph_spends'))) return
    for (const [table, column] of [
      ['graph_outputs', 'carrier'],
      ['graph_silent_spends', 'satoshis'],
      ['graph_spends', 'satoshis'],
    ] as const)
      if (await knex.schema.hasColumn(table, column))
        await knex.schema.alterTable(table, (altered) => {
          altered.dropColumn(column)
        })
  },
}
