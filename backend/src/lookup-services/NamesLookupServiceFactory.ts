import type { Knex } from 'knex'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import type { HostMigration, SqlDatabase } from '../graph/host-database.js'
import type { LookupService } from '../graph/overlay-interfaces.js'
import type { Deployment } from '../protocol/mint.js'
import { deploymentOf, LOOKUP_SERVICES, PROFILES } from '../protocol/profile.js'
import { sharedStore } from '../storage/sql/graph-store.js'
import { SqlHookOutbox } from '../storage/sql/hook-outbox.js'
import { migrationsFor } from '../storage/sql/migrations.js'
import type { HookFailure } from './hook-retries.js'
import { NamesLookupService } from './NamesLookupService.js'

/**
 * `ls_names` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * host runs the migrations.
 *
 * @param options.deployment The tree to follow; mainnet's by default.
 * @param options.onHookFailure Called for every hook that failed and will be retried: to log or count them.
 */
export default function createNamesLookupService(
  database: SqlDatabase,
  options: { deployment?: Deployment; onHookFailure?: (failure: HookFailure) => void } = {},
): { service: LookupService; migrations: HostMigration[] } {
  const knex = database as Knex
  const store = sharedStore(knex)
  const retries = { outbox: new SqlHookOutbox(knex), onHookFailure: options.onHookFailure }
  const deployment = options.deployment ?? deploymentOf(PROFILES.mainnet)
  return {
    service: new NamesLookupService({
      reader: new BlocklistFilter(store),
      writer: store,
      deployment,
      retries,
    }),
    migrations: migrationsFor(LOOKUP_SERVICES.names),
  }
}
