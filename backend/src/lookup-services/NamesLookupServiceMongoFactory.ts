import type { Db } from 'mongodb'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import type { MongoDatabase } from '../graph/host-database.js'
import { hostRules, shareIndex } from '../graph/host-index.js'
import type { LookupService } from '../graph/overlay-interfaces.js'
import type { Deployment } from '../protocol/mint.js'
import { deploymentOf, PROFILES } from '../protocol/profile.js'
import { sharedStore } from '../storage/mongo/graph-store.js'
import { StoredHookOutbox } from '../storage/write/hook-outbox.js'
import type { HookFailure } from './hook-retries.js'
import { NamesLookupService } from './NamesLookupService.js'

/**
 * `ls_names` over a host's MongoDB, in the shape of OverlayExpress's `configureLookupServiceWithMongo`. The
 * first write makes the collections and their indexes.
 *
 * @param options.deployment The tree to follow; mainnet's by default.
 * @param options.onHookFailure Called for every hook that failed and will be retried: to log or count them.
 */
export default function createNamesLookupService(
  database: MongoDatabase,
  options: { deployment?: Deployment; onHookFailure?: (failure: HookFailure) => void } = {},
): LookupService {
  const db = database as Db
  const store = sharedStore(db)
  const retries = { outbox: new StoredHookOutbox(store.database), onHookFailure: options.onHookFailure }
  shareIndex(store)
  const deployment = options.deployment ?? deploymentOf(PROFILES.mainnet)
  hostRules(store).deployment = deployment
  return new NamesLookupService({
    reader: new BlocklistFilter(store),
    writer: store,
    deployment,
    retries,
    derives: true,
    assemblesHistories: false,
  })
}
