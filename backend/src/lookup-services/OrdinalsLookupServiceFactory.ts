import type { LookupService } from '../graph/overlay-interfaces.js'
import { engineOn } from '../host/engine-tables.js'
import type { SqlDatabase } from '../host/host-database.js'
import { hostedIndex } from '../host/hosted-index.js'
import { type HostedServiceOptions, hostedOrdinals } from './services.js'

/**
 * `ls_ordinals` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The first use creates
 * the tables.
 */
export default function createOrdinalsLookupService(
  database: SqlDatabase,
  options: HostedServiceOptions = {},
): { service: LookupService; migrations: [] } {
  const hosted = hostedIndex(database, { ...options, openEngine: engineOn(database) })
  // The log creates its tables itself, on first use: hosts count the migrations of all services in one sequence.
  return { service: hostedOrdinals(hosted), migrations: [] }
}
