import type { LookupService } from '@bsv/overlay'
import type { Db } from 'mongodb'
import { BlocklistFilter } from '../graph/blocklist-filter.js'
import { sharedStore } from '../storage/mongo/graph-store.js'
import { MongoHookOutbox } from '../storage/mongo/hook-outbox.js'
import type { HookFailure } from './hook-outbox.js'
import { OrdinalsLookupService } from './OrdinalsLookupService.js'

/**
 * `ls_ordinals` over a host's MongoDB, in the shape of OverlayExpress's `configureLookupServiceWithMongo`. The
 * first write makes the collections and their indexes.
 *
 * @param options.onHookFailure Told of every hook that failed, which is noted and repeated: for a log, or to count them.
 */
export default function createOrdinalsLookupService(
  db: Db,
  options: { onHookFailure?: (failure: HookFailure) => void } = {},
): LookupService {
  const store = sharedStore(db)
  const remembering = { notes: new MongoHookOutbox(db, store.writer), onHookFailure: options.onHookFailure }
  return new OrdinalsLookupService({ reader: new BlocklistFilter(store), writer: store, remembering })
}
