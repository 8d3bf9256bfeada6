import type { Db } from 'mongodb'
import type { MongoDatabase, SqlDatabase } from '../graph/host-database.js'
import type { LookupService } from '../graph/overlay-interfaces.js'
import { sharedStore } from '../storage/mongo/graph-store.js'
import { engineOutputsBeside } from '../storage/sql/engine-outputs.js'
import { StoredHookOutbox } from '../storage/write/hook-outbox.js'
import { type HostedNamesOptions, hostedNames } from './hosted-services.js'

/**
 * `ls_names` over a host's MongoDB, in the shape of OverlayExpress's `configureLookupServiceWithMongo`. The
 * first write makes the collections and their indexes.
 *
 * @param options.engineDatabase The host's knex, where its engine stores what it admits; by default, the database that
 *   `KNEX_URL` names, as in the programs of LARS and CARS.
 */
export default function createNamesLookupService(
  database: MongoDatabase,
  { engineDatabase, ...options }: HostedNamesOptions & { engineDatabase?: SqlDatabase } = {},
): LookupService {
  const store = sharedStore(database as Db)
  const outbox = new StoredHookOutbox(store.database)
  return hostedNames({ store, outbox, openEngine: engineOutputsBeside(engineDatabase) }, options)
}
