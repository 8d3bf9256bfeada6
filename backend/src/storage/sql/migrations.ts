import type { Knex } from 'knex'
import { isMysql } from './dialect.js'
import { admittedGraph } from './migrations/001-admitted-graph.js'
import { conflicts } from './migrations/002-conflicts.js'
import { blocked } from './migrations/003-blocked.js'
import { hookNotes } from './migrations/004-hook-notes.js'
import { knexReader } from './sql-reader.js'

export interface Migration {
  name: string
  up(knex: Knex): Promise<void>
  down(knex: Knex): Promise<void>
}

/** Every change of the schema, oldest first; a released one is never edited. */
const migrations: Migration[] = [admittedGraph, conflicts, blocked, hookNotes]

const source: Knex.MigrationSource<Migration> = {
  getMigrations: async () => migrations,
  getMigrationName: ({ name }) => name,
  getMigration: async (migration) => migration,
}

/**
 * The migrations for a host that runs them itself, next to those of others: every name is the owner's.
 *
 * @param owner The lookup service that brings them, as `ls_names`.
 */
export function migrationsFor(owner: string): Migration[] {
  return migrations.map((migration) => ({ ...migration, name: `minetree-${owner}-${migration.name}` }))
}

/** For how long another process may be at it, in seconds. */
const PATIENCE = 60
const MIGRATION = "concat('minetree ', sha1(database()))"

/**
 * Brings a database to the newest schema. Processes that start together on one MySQL do it one after another; its own
 * lock ends with the connection that has it, so that a process that ends half-way leaves none.
 *
 * @throws Error where another process is at it for longer than a minute.
 */
export async function migrate(knex: Knex): Promise<void> {
  const options = { migrationSource: source, tableName: 'minetree_migrations' }
  if (!isMysql(knex)) {
    await knex.migrate.latest(options)
    return
  }
  await knex.transaction(async (trx) => {
    const [row] = await knexReader(trx).all(`select get_lock(${MIGRATION}, ?) as locked`, [PATIENCE])
    if (Number(row?.locked) !== 1) throw new Error('another process is changing the schema')
    try {
      // Whoever had knex's own lock has ended.
      await knex.migrate.forceFreeMigrationsLock(options)
      await knex.migrate.latest(options)
    } finally {
      await trx.raw(`do release_lock(${MIGRATION})`)
    }
  })
}
