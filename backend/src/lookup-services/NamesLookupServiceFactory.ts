import type { Knex } from 'knex'
import type { SqlDatabase } from '../graph/host-database.js'
import type { LookupService } from '../graph/overlay-interfaces.js'
import { engineOutputsIn } from '../storage/sql/engine-outputs.js'
import { sharedStore } from '../storage/sql/graph-store.js'
import { StoredHookOutbox } from '../storage/write/hook-outbox.js'
import { type HostedNamesOptions, hostedNames } from './hosted-services.js'

/**
 * `ls_names` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * first use creates the tables.
 */
export default function createNamesLookupService(
  database: SqlDatabase,
  options: HostedNamesOptions = {},
): { service: LookupService; migrations: [] } {
  const knex = database as Knex
  const store = sharedStore(knex)
  const outbox = new StoredHookOutbox(store.database)
  const service = hostedNames({ store, outbox, openEngine: engineOutputsIn(knex) }, options)
  // The store creates its tables itself, on first use: a host counts the migrations of all services through.
  return { service, migrations: [] }
}
