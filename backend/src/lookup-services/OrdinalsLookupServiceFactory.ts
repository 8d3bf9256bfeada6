import type { LookupService } from '@bsv/overlay'
import type { Knex } from 'knex'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import { openedOutbox } from '../graph/hook-outbox.js'
import { hostRules, once, shareIndex } from '../graph/host-index.js'
import { sharedStore } from '../storage/sql/graph-store.js'
import { SqlHookOutbox } from '../storage/sql/hook-outbox.js'
import type { Migration } from '../storage/sql/migrations.js'
import type { HookFailure } from './hook-retries.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/**
 * `ls_ordinals` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * first use creates the tables.
 *
 * @param options.onHookFailure Called for every hook that failed and will be retried: to log or count them.
 */
export default function createOrdinalsLookupService(
  knex: Knex,
  options: { onHookFailure?: (failure: HookFailure) => void } = {},
): { service: LookupService; migrations: Migration[] } {
  const store = sharedStore(knex)
  const outbox = openedOutbox(
    once(() => store.open()),
    new SqlHookOutbox(knex),
  )
  const retries = { outbox, onHookFailure: options.onHookFailure }
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
