import type { LookupService } from '@bsv/overlay'
import type { Db } from 'mongodb'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import { openedOutbox } from '../graph/hook-outbox.js'
import { hostRules, once, shareIndex } from '../graph/host-index.js'
import { sharedStore } from '../storage/mongo/graph-store.js'
import { MongoHookOutbox } from '../storage/mongo/hook-outbox.js'
import type { HookFailure } from './hook-retries.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/**
 * `ls_ordinals` over a host's MongoDB, in the shape of OverlayExpress's `configureLookupServiceWithMongo`. The
 * first write makes the collections and their indexes.
 *
 * @param options.onHookFailure Called for every hook that failed and will be retried: to log or count them.
 */
export default function createOrdinalsLookupService(
  db: Db,
  options: { onHookFailure?: (failure: HookFailure) => void } = {},
): LookupService {
  const store = sharedStore(db)
  const outbox = openedOutbox(
    once(() => store.open()),
    new MongoHookOutbox(db, store.writer),
  )
  const retries = { outbox, onHookFailure: options.onHookFailure }
  shareIndex(store)
  return new OrdinalsLookupService({
    reader: new BlocklistFilter(store),
    writer: store,
    retries,
    derivesBy: () => hostRules(store),
  })
}
