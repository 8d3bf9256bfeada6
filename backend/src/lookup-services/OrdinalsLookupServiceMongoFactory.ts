import type { LookupService } from '../graph/overlay-interfaces.js'
import { engineBeside } from '../host/engine-tables.js'
import type { MongoDatabase, SqlDatabase } from '../host/host-database.js'
import { hostedIndex } from '../host/hosted-index.js'
import { type HostedServiceOptions, hostedOrdinals } from './services.js'

/**
 * `ls_ordinals` over a host's MongoDB, in the shape of OverlayExpress's `configureLookupServiceWithMongo`. The first use creates
 * the collections and their indexes.
 *
 * @param options.engineDatabase The host's knex, where its engine stores what it admits; by default, the database that `KNEX_URL`
 * names, as in the programs of LARS and CARS.
 */
export default function createOrdinalsLookupService(
  database: MongoDatabase,
  { engineDatabase, ...options }: HostedServiceOptions & { engineDatabase?: SqlDatabase } = {},
): LookupService {
  const hosted = hostedIndex(database, { ...options, openEngine: engineBeside(engineDatabase) })
  return hostedOrdinals(hosted)
}
