import type { LookupService } from '@bsv/overlay'
import type { Db } from 'mongodb'
import { GuardedStore } from '../graph/guarded-store.js'
import { MongoHookNotes } from '../storage/mongo/mongo-hook-notes.js'
import { sharedStore } from '../storage/mongo/shared-store.js'
import type { HookFailure } from './failed-hooks.js'
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
  const remembering = { notes: new MongoHookNotes(db, store.writer), onHookFailure: options.onHookFailure }
  return new OrdinalsLookupService({ reader: new GuardedStore(store), writer: store, remembering })
}
