import type { Knex } from 'knex'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import type { HostMigration, SqlDatabase } from '../graph/host-database.js'
import type { LookupService } from '../graph/overlay-interfaces.js'
import { LOOKUP_SERVICES } from '../protocol/profile.js'
import { sharedStore } from '../storage/sql/graph-store.js'
import { SqlHookOutbox } from '../storage/sql/hook-outbox.js'
import { migrationsFor } from '../storage/sql/migrations.js'
import type { HookFailure } from './hook-retries.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/**
 * `ls_ordinals` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * host runs the migrations.
 *
 * @param options.onHookFailure Called for every hook that failed and will be retried: to log or count them.
 */
export default function createOrdinalsLookupService(
  database: SqlDatabase,
  options: { onHookFailure?: (failure: HookFailure) => void } = {},
): { service: LookupService; migrations: HostMigration[] } {
  const knex = database as Knex
  const store = sharedStore(knex)
  const retries = { outbox: new SqlHookOutbox(knex), onHookFailure: options.onHookFailure }
  return {
    service: new OrdinalsLookupService({ reader: new BlocklistFilter(store), writer: store, retries }),
    migrations: migrationsFor(LOOKUP_SERVICES.ordinals),
  }
}
