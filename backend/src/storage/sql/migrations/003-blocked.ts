import type { Knex } from 'knex'
import { formatOutpoint } from '../../../protocol/outpoint.js'
import { outpointColumns, outpointOf } from '../../rows/columns.js'
import { insertNew, knexWriter } from '../database.js'
import { asciiText, createTable } from './create-table.js'

/** The blocklist, which includes earlier evictions. */
export const blocked = {
  name: '003-blocked',

  async up(knex: Knex): Promise<void> {
    await createTable(knex, 'graph_blocked', (table) => {
      table.string('kind', 16).notNullable()
      table.specificType('value', asciiText(knex)).notNullable()
      // An outpoint again as other tables have it, for joins.
      table.binary('txid', 32)
      table.bigInteger('vout').unsigned()
      table.text('reason').notNullable()
      table.bigInteger('since').unsigned().notNullable()
      table.primary(['kind', 'value'])
      table.index(['txid', 'vout'])
    })
    if (!(await knex.schema.hasTable('graph_evictions'))) return
    const since = Date.now()
    for (const row of await knex('graph_evictions').select('txid', 'vout')) {
      const outpoint = outpointOf(row)
      const subject = { kind: 'outpoint', value: formatOutpoint(outpoint), ...outpointColumns(outpoint) }
      await insertNew(knexWriter(knex), 'graph_blocked', [{ ...subject, reason: 'evicted', since }])
    }
    await knex.schema.dropTable('graph_evictions')
  },

  async down(knex: Knex): Promise<void> {
    // The other lookup service of a host may have been first.
    if (!(await knex.schema.hasTable('graph_blocked'))) return
    await createTable(knex, 'graph_evictions', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.primary(['txid', 'vout'])
    })
    for (const row of await knex('graph_blocked').where({ kind: 'outpoint' }).select('txid', 'vout')) {
      await insertNew(knexWriter(knex), 'graph_evictions', [outpointColumns(outpointOf(row))])
    }
    await knex.schema.dropTable('graph_blocked')
  },
}
