import type { Knex } from 'knex'
import { admittedGraph } from './migrations/001-admitted-graph.js'
import { conflicts } from './migrations/002-conflicts.js'
import { blocked } from './migrations/003-blocked.js'
import { hookNotes } from './migrations/004-hook-notes.js'

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

/** Brings a database to the newest schema. */
export async function migrate(knex: Knex): Promise<void> {
  await knex.migrate.latest({ migrationSource: source, tableName: 'minetree_migrations' })
}
