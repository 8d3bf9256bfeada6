import type { LookupService } from '../graph/overlay-interfaces.js'
import { engineOn } from '../host/engine-tables.js'
import type { SqlDatabase } from '../host/host-database.js'
import { hostedIndex } from '../host/hosted-index.js'
import { type HostedNamesOptions, hostedNames } from './services.js'

/**
 * `ls_names` over a host's SQL database, in the shape of OverlayExpress's `configureLookupServiceWithKnex`. The first use creates
 * the tables.
 */
export default function createNamesLookupService(
  database: SqlDatabase,
  { deployment, ...options }: HostedNamesOptions = {},
): { service: LookupService; migrations: [] } {
  const hosted = hostedIndex(database, { ...options, openEngine: engineOn(database) })
  // The log creates its tables itself, on first use: hosts count the migrations of all services in one sequence.
  return { service: hostedNames(hosted, deployment), migrations: [] }
}
