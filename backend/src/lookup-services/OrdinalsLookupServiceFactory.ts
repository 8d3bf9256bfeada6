import type { Knex } from 'knex'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import type { SqlDatabase } from '../graph/host-database.js'
import { hostRules, shareIndex } from '../graph/host-index.js'
import type { LookupService } from '../graph/overlay-interfaces.js'
import { sharedStore } from '../storage/sql/graph-store.js'
import { StoredHookOutbox } from '../storage/write/hook-outbox.js'
import type { HookFailure } from './hook-retries.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/**
 * `ls_ordinals` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * first use creates the tables.
 *
 * @param options.onHookFailure Called for every hook that failed and will be retried: to log or count them.
 */
export default function createOrdinalsLookupService(
  database: SqlDatabase,
  options: { onHookFailure?: (failure: HookFailure) => void } = {},
): { service: LookupService; migrations: [] } {
  const knex = database as Knex
  const store = sharedStore(knex)
  const retries = { outbox: new StoredHookOutbox(store.database), onHookFailure: options.onHookFailure }
  shareIndex(store)
  return {
    service: new OrdinalsLookupService({
      reader: new BlocklistFilter(store),
      writer: store,
      retries,
      derivesBy: () => hostRules(store),
    }),
    // The store creates its tables itself, on first use: a host counts the migrations of all services through.
    migrations: [],
  }
}
