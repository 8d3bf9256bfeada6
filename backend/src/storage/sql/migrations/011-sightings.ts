import type { Knex } from 'knex'
import { createTable, hasIndex } from './create-table.js'

const PENDING_ORDER = ['proven', 'arrival', 'txid']
const PENDING_INDEX = 'graph_pending_proven_arrival_txid_index'
const WAITING_ORDER = ['waiting', ...PENDING_ORDER]
const WAITING_INDEX = 'graph_pending_waiting_proven_arrival_txid_index'

/** What the network said of unproven transactions, and losers of conflicts that wait for it. */
export const sightings = {
  name: '011-sightings',

  async up(knex: Knex): Promise<void> {
    await createTable(knex, 'graph_sightings', (table) => {
      table.binary('txid', 32).notNullable().primary()
      table.boolean('seen').notNullable()
    })
    if (!(await knex.schema.hasColumn('graph_transactions', 'rejected'))) {
      if (!(await knex.schema.hasColumn('graph_transactions', 'seen')))
        await knex.schema.alterTable('graph_transactions', (table) => {
          table.boolean('seen').notNullable().defaultTo(false)
        })
      await knex('graph_transactions').whereNotNull('mined').update({ seen: true })
      // Last: where DDL is not transactional, an attempt may have ended before it.
      await knex.schema.alterTable('graph_transactions', (table) => {
        table.boolean('rejected').notNullable().defaultTo(false)
      })
    }
    if (!(await knex.schema.hasColumn('graph_pending', 'waiting')))
      await knex.schema.alterTable('graph_pending', (table) => {
        table.boolean('waiting').notNullable().defaultTo(false)
      })
    if (!(await knex.schema.hasColumn('graph_pending', 'client')))
      await knex.schema.alterTable('graph_pending', (table) => {
        table.binary('client', 8)
      })
    const [hasOld, hasNew] = [await hasIndex(knex, PENDING_INDEX), await hasIndex(knex, WAITING_INDEX)]
    await knex.schema.alterTable('graph_pending', (table) => {
      if (!hasNew) table.index(WAITING_ORDER, WAITING_INDEX)
      if (hasOld) table.dropIndex(PENDING_ORDER, PENDING_INDEX)
    })
  },

  async down(knex: Knex): Promise<void> {
    await knex.schema.dropTableIfExists('graph_sightings')
    // The other lookup service of a host may have been first.
    if (!(await knex.schema.hasTable('graph_pending'))) return
    if (await knex.schema.hasColumn('graph_pending', 'waiting')) {
      const [hasOld, hasNew] = [await hasIndex(knex, PENDING_INDEX), await hasIndex(knex, WAITING_INDEX)]
      await knex.schema.alterTable('graph_pending', (table) => {
        if (!hasOld) table.index(PENDING_ORDER, PENDING_INDEX)
        if (hasNew) table.dropIndex(WAITING_ORDER, WAITING_INDEX)
        table.dropColumns('waiting', 'client')
      })
    }
    if (await knex.schema.hasColumn('graph_transactions', 'rejected'))
      await knex.schema.alterTable('graph_transactions', (table) => {
        table.dropColumns('seen', 'rejected')
      })
  },
}
