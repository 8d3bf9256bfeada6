import type { LookupService } from '@bsv/overlay'
import type { Knex } from 'knex'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import { openedOutbox } from '../graph/hook-outbox.js'
import { hostRules, once, shareIndex } from '../graph/host-index.js'
import type { Deployment } from '../protocol/mint.js'
import { deploymentOf, PROFILES } from '../protocol/profile.js'
import { sharedStore } from '../storage/sql/graph-store.js'
import { SqlHookOutbox } from '../storage/sql/hook-outbox.js'
import type { Migration } from '../storage/sql/migrations.js'
import type { HookFailure } from './hook-retries.js'
import { NamesLookupService } from './NamesLookupService.js'

/**
 * `ls_names` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The
 * first use creates the tables.
 *
 * @param options.deployment The tree to follow; mainnet's by default.
 * @param options.onHookFailure Called for every hook that failed and will be retried: to log or count them.
 */
export default function createNamesLookupService(
  knex: Knex,
  options: { deployment?: Deployment; onHookFailure?: (failure: HookFailure) => void } = {},
): { service: LookupService; migrations: Migration[] } {
  const store = sharedStore(knex)
  const outbox = openedOutbox(
    once(() => store.open()),
    new SqlHookOutbox(knex),
  )
  const retries = { outbox, onHookFailure: options.onHookFailure }
  shareIndex(store)
  const deployment = options.deployment ?? deploymentOf(PROFILES.mainnet)
  hostRules(store).deployment = deployment
  return {
    service: new NamesLookupService({
      reader: new BlocklistFilter(store),
      writer: store,
      deployment,
      retries,
      derives: true,
      assemblesHistories: false,
    }),
    // The store creates its tables itself, on first use: a host counts the migrations of all services through.
    migrations: [],
  }
}
