import type { Knex } from 'knex'
import { isMysql } from './database.js'
import { holdingLock } from './exclusive-write.js'
import { admittedGraph } from './migrations/001-admitted-graph.js'
import { conflicts } from './migrations/002-conflicts.js'
import { blocked } from './migrations/003-blocked.js'
import { hookOutbox } from './migrations/004-hook-notes.js'
import { derivedAdmissions } from './migrations/005-derived-admissions.js'
import { backlog } from './migrations/006-backlog.js'

export interface Migration {
  name: string
  up(knex: Knex): Promise<void>
  down(knex: Knex): Promise<void>
}

/** Every change of the schema, oldest first; a released one is never edited. */
const migrations: Migration[] = [admittedGraph, conflicts, blocked, hookOutbox, derivedAdmissions, backlog]

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

/** Where it stands which of them were done. */
export const MIGRATIONS_TABLE = 'minetree_migrations'

/** The names of all, oldest first: what the schema of this version is called by. */
export function schemaNames(): string[] {
  return migrations.map(({ name }) => name)
}

/** For how long another process may be at it, in seconds. */
const PATIENCE = 60

const OPTIONS = { migrationSource: source, tableName: MIGRATIONS_TABLE }

/**
 * Brings a database to the newest schema. Processes that start together on one MySQL do it one after another.
 *
 * @throws Error where another process is at it for longer than a minute.
 */
export async function migrate(knex: Knex): Promise<void> {
  await holdingLock(knex, { name: 'migration', patience: PATIENCE }, async () => {
    // Whoever had knex's own lock there has ended.
    if (isMysql(knex)) await knex.migrate.forceFreeMigrationsLock(OPTIONS)
    await knex.migrate.latest(OPTIONS)
  })
}

/** Brings an empty database to an older schema: that of the first so many migrations. */
export async function migrateThrough(knex: Knex, count: number): Promise<void> {
  await holdingLock(knex, { name: 'migration', patience: PATIENCE }, async () => {
    const [done] = (await knex.migrate.list(OPTIONS)) as [unknown[], unknown[]]
    for (let at = done.length; at < count; at++) await knex.migrate.up(OPTIONS)
  })
}
