import type { Knex } from 'knex'
import { isMysql } from './database.js'
import { holdingLock } from './exclusive-write.js'
import { admittedGraph } from './migrations/001-admitted-graph.js'
import { conflicts } from './migrations/002-conflicts.js'
import { blocked } from './migrations/003-blocked.js'
import { hookOutbox } from './migrations/004-hook-notes.js'
import { derivedAdmissions } from './migrations/005-derived-admissions.js'
import { backlog } from './migrations/006-backlog.js'
import { headers } from './migrations/007-headers.js'
import { ancestors } from './migrations/008-ancestors.js'
import { unproven } from './migrations/009-unproven.js'
import { listings } from './migrations/010-listings.js'
import { sightings } from './migrations/011-sightings.js'
import { scores } from './migrations/012-scores.js'
import { claimedParents } from './migrations/013-claimed-parents.js'
import { checksums } from './migrations/014-checksums.js'

export interface Migration {
  name: string
  up(knex: Knex): Promise<void>
  down(knex: Knex): Promise<void>
}

/** Every change of the schema, oldest first; a released one is never edited. */
const migrations: Migration[] = [
  admittedGraph,
  conflicts,
  blocked,
  hookOutbox,
  derivedAdmissions,
  backlog,
  headers,
  ancestors,
  unproven,
  listings,
  sightings,
  scores,
  claimedParents,
  checksums,
]

const source: Knex.MigrationSource<Migration> = {
  getMigrations: async () => migrations,
  getMigrationName: ({ name }) => name,
  getMigration: async (migration) => migration,
}

/** The table of applied migrations. */
export const MIGRATIONS_TABLE = 'minetree_migrations'

/** All names, oldest first: they identify the schema of this version. */
export function schemaNames(): string[] {
  return migrations.map(({ name }) => name)
}

/** How long to wait for another process that is migrating, in seconds. */
const PATIENCE = 60

const OPTIONS = { migrationSource: source, tableName: MIGRATIONS_TABLE }

/**
 * Migrates a database to the newest schema. Processes that start at the same time on one MySQL do it one after another.
 *
 * @throws Error if another process takes longer than a minute.
 */
export async function migrate(knex: Knex): Promise<void> {
  await holdingLock(knex, { name: 'migration', patience: PATIENCE }, async () => {
    // We have the lock, so the process that left knex's own lock is gone.
    if (isMysql(knex)) await knex.migrate.forceFreeMigrationsLock(OPTIONS)
    await knex.migrate.latest(OPTIONS)
  })
}

/** Migrates an empty database to an older schema: that of the first `count` migrations. */
export async function migrateThrough(knex: Knex, count: number): Promise<void> {
  await holdingLock(knex, { name: 'migration', patience: PATIENCE }, async () => {
    const [done] = (await knex.migrate.list(OPTIONS)) as [unknown[], unknown[]]
    for (let at = done.length; at < count; at++) await knex.migrate.up(OPTIONS)
  })
}
