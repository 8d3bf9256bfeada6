import type { LookupService } from '@bsv/overlay'
import type { Knex } from 'knex'
import { GuardedStore } from '../graph/guarded-store.js'
import type { Deployment } from '../protocol/mint.js'
import { deploymentOf, LOOKUP_SERVICES, PROFILES } from '../protocol/profile.js'
import { type Migration, migrationsFor } from '../storage/sql/migrations.js'
import { sharedStore } from '../storage/sql/shared-store.js'
import { SqlHookNotes } from '../storage/sql/sql-hook-notes.js'
import type { HookFailure } from './failed-hooks.js'
import { NamesLookupService } from './NamesLookupService.js'

/**
 * `ls_names` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * host runs the migrations.
 *
 * @param options.deployment The tree to follow; mainnet's where nothing is given.
 * @param options.onHookFailure Told of every hook that failed, which is noted and repeated: for a log, or to count them.
 */
export default function createNamesLookupService(
  knex: Knex,
  options: { deployment?: Deployment; onHookFailure?: (failure: HookFailure) => void } = {},
): { service: LookupService; migrations: Migration[] } {
  const store = sharedStore(knex)
  const remembering = { notes: new SqlHookNotes(knex), onHookFailure: options.onHookFailure }
  const deployment = options.deployment ?? deploymentOf(PROFILES.mainnet)
  return {
    service: new NamesLookupService({
      reader: new GuardedStore(store),
      writer: store,
      deployment,
      remembering,
    }),
    migrations: migrationsFor(LOOKUP_SERVICES.names),
  }
}
