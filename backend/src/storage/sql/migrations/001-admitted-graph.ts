import type { Knex } from 'knex'
import { anyBytes, asciiText, createTable } from './create-table.js'

/**
 * The admitted graph. `docs/schema.md` says what each table holds and why its key is what it is. The prefix distinguishes
 * the tables from those of an engine's own storage, which other hosts have in the same database.
 */
export const admittedGraph = {
  name: '001-admitted-graph',

  async up(knex: Knex): Promise<void> {
    const nameType = asciiText(knex)
    const bytesType = anyBytes(knex)
    const table = async (name: string, build: (table: Knex.CreateTableBuilder) => void): Promise<void> =>
      await createTable(knex, name, build)
    await table('graph_transactions', (table) => {
      table.binary('txid', 32).notNullable().primary()
      table.specificType('merkle_path', bytesType)
      table.integer('height').unsigned()
    })
    await table('graph_pieces', (table) => {
      table.binary('owner', 32).notNullable()
      table.integer('position').unsigned().notNullable()
      table.specificType('bytes', bytesType).notNullable()
      table.primary(['owner', 'position'])
    })
    await table('graph_spends', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.binary('spender', 32).notNullable()
      table.primary(['txid', 'vout', 'spender'])
    })
    await table('graph_outputs', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.bigInteger('satoshis').unsigned().notNullable()
      table.binary('content_sha256', 32)
      // Untrusted: stored as bytes, as an engine may truncate text or fold its case.
      table.binary('content_type', 255)
      table.bigInteger('content_length').unsigned()
      table.binary('previous_txid', 32)
      table.bigInteger('previous_vout').unsigned()
      table.boolean('unsettled').notNullable()
      // A lineage is identified by its first output, from which steps are counted. `content_step` is the step if the output
      // has content (`parent_step` a parent, `map_step` MAP), so that an index finds the first, and the last up to a step.
      table.binary('lineage_txid', 32).notNullable()
      table.bigInteger('lineage_vout').unsigned().notNullable()
      table.bigInteger('step').notNullable()
      table.bigInteger('content_step')
      table.binary('owner', 20)
      table.binary('parent_txid', 32)
      table.bigInteger('parent_vout').unsigned()
      table.bigInteger('parent_step')
      // The lengths of its own MAP, and of its MAP snapshot if it keeps one; their bytes are in `graph_pieces`.
      table.bigInteger('map_length').unsigned()
      table.bigInteger('map_step')
      table.bigInteger('merged_length').unsigned()
      table.primary(['txid', 'vout'])
      table.index(['previous_txid', 'previous_vout'])
      table.index(['content_sha256'])
      table.index(['lineage_txid', 'lineage_vout', 'step'])
      table.index(['lineage_txid', 'lineage_vout', 'content_step'])
      table.index(['lineage_txid', 'lineage_vout', 'parent_step'])
      table.index(['lineage_txid', 'lineage_vout', 'map_step'])
    })
    await table('graph_traits', (table) => {
      table.binary('trait', 32).notNullable()
      table.binary('lineage_txid', 32).notNullable()
      table.bigInteger('lineage_vout').unsigned().notNullable()
      table.string('kind', 16).notNullable()
      table.primary(['trait', 'lineage_txid', 'lineage_vout'])
      table.index(['lineage_txid', 'lineage_vout', 'kind'])
    })
    await table('graph_nodes', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.specificType('domain', nameType).notNullable()
      table.primary(['txid', 'vout'])
      table.index(['domain'])
    })
    await table('graph_names', (table) => {
      table.specificType('name', nameType).notNullable()
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.primary(['name', 'txid', 'vout'])
      table.index(['txid', 'vout'])
    })
    await table('graph_admissions', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.string('topic', 64).notNullable()
      table.bigInteger('score').unsigned().notNullable()
      table.primary(['txid', 'vout', 'topic'])
      table.index(['topic', 'score'])
    })
    await table('graph_applied', (table) => {
      table.binary('txid', 32).notNullable()
      table.string('topic', 64).notNullable()
      table.primary(['txid', 'topic'])
    })
    await table('graph_evictions', (table) => {
      table.binary('txid', 32).notNullable()
      table.bigInteger('vout').unsigned().notNullable()
      table.primary(['txid', 'vout'])
    })
    await table('graph_interactions', (table) => {
      table.string('host', 255).notNullable()
      table.string('topic', 64).notNullable()
      table.bigInteger('since').unsigned().notNullable()
      table.primary(['host', 'topic'])
    })
    await table('graph_settings', (table) => {
      table.string('name', 64).notNullable().primary()
      table.string('value', 255).notNullable()
    })
  },

  async down(knex: Knex): Promise<void> {
    const tables = [
      'graph_settings',
      'graph_interactions',
      'graph_evictions',
      'graph_applied',
      'graph_admissions',
      'graph_names',
      'graph_nodes',
      'graph_traits',
      'graph_outputs',
      'graph_spends',
      'graph_pieces',
      'graph_transactions',
    ]
    // As with `up`, the other lookup service of the host may have been first.
    for (const table of tables) await knex.schema.dropTableIfExists(table)
  },
}
