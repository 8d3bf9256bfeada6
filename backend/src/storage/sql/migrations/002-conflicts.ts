import { MerklePath } from '@bsv/sdk'
import type { Knex } from 'knex'
import { bytesOf, hashColumn } from '../../rows/columns.js'
import { insertNew, knexWriter } from '../database.js'
import { anyBytes, createTable } from './create-table.js'

/** One spender per outpoint: the status of each transaction, and shadow tables for inactive ones. */
export const conflicts = {
  name: '002-conflicts',

  async up(knex: Knex): Promise<void> {
    if (!(await knex.schema.hasColumn('graph_transactions', 'arrival'))) {
      await knex.schema.alterTable('graph_transactions', (table) => {
        table.binary('merkle_root', 32)
        table.integer('mined').unsigned()
        table.bigInteger('arrival').notNullable().defaultTo(0)
        table.boolean('silent').notNullable().defaultTo(false)
        table.index(['height', 'merkle_root'])
        table.index(['arrival'])
      })
      await knex.schema.alterTable('graph_spends', (table) => {
        table.index(['spender'])
      })
    }
    await createTable(knex, 'graph_silent_spends', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.binary('spender', 32).notNullable()
      table.primary(['txid', 'vout', 'spender'])
      table.index(['spender'])
    })
    await createTable(knex, 'graph_silent_facts', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.string('kind', 16).notNullable()
      table.binary('content_sha256', 32)
      table.specificType('body', anyBytes(knex)).notNullable()
      table.primary(['txid', 'vout', 'kind'])
      table.index(['content_sha256'])
    })
    await rootsOfProofs(knex)
    // Spends were not recorded for all transactions before.
    if ((await knex('graph_transactions').first('txid')) !== undefined)
      await insertNew(knexWriter(knex), 'graph_settings', [{ name: 'reindex', value: 'needed' }])
  },

  async down(knex: Knex): Promise<void> {
    await knex.schema.dropTableIfExists('graph_silent_facts')
    await knex.schema.dropTableIfExists('graph_silent_spends')
    if (!(await knex.schema.hasTable('graph_transactions'))) return
    if (!(await knex.schema.hasColumn('graph_transactions', 'arrival'))) return
    await knex.schema.alterTable('graph_spends', (table) => {
      table.dropIndex(['spender'])
    })
    await knex.schema.alterTable('graph_transactions', (table) => {
      table.dropIndex(['height', 'merkle_root'])
      table.dropIndex(['arrival'])
      table.dropColumns('merkle_root', 'mined', 'arrival', 'silent')
    })
  },
}

/** Adds to each stored proof the block that it leads to. */
async function rootsOfProofs(knex: Knex): Promise<void> {
  for (;;) {
    const rows = await knex('graph_transactions')
      .whereNotNull('merkle_path')
      .whereNull('merkle_root')
      .limit(500)
      .select('txid', 'merkle_path', 'height')
    for (const { txid, merkle_path, height } of rows) {
      const root = MerklePath.fromBinary(Array.from(bytesOf(merkle_path))).computeRoot()
      await knex('graph_transactions')
        .where({ txid: Buffer.from(bytesOf(txid)) })
        .update({ merkle_root: hashColumn(root), mined: height })
    }
    if (rows.length === 0) return
  }
}
