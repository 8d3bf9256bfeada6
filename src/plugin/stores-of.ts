import type { HostDatabase } from '../../backend/src/host/host-database.js'
import { hostedIndex } from '../../backend/src/host/hosted-index.js'
import { answeringServices, type NamesOptions } from '../../backend/src/lookup-services/services.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { AnsweringService } from '../../backend/src/read/provenance.js'

export interface HostStores {
  graph: FactStore
  /** `ls_names` and `ls_ordinals`, answered from the index as by `attachGateway`. */
  lookupServices: (options: NamesOptions) => Record<string, AnsweringService>
}

/**
 * The stores that `attachGateway` reads, in the database of the host's lookup services. The first use creates their
 * tables.
 *
 * @param database The host's `knex` or `mongoDb`, after `configureKnex` or `configureMongo`.
 * @throws TypeError if the host has not connected to it yet.
 */
export function storesOf(database: HostDatabase | undefined): HostStores {
  const { store: graph } = hostedIndex(connected(database, 'storesOf'))
  return { graph, lookupServices: (options) => answeringServices(graph.served, options) }
}

/** A host's database. @throws TypeError if the host has not connected to it yet. */
export function connected(database: HostDatabase | undefined, caller: string): HostDatabase {
  if (database !== undefined) return database
  throw new TypeError(`${caller} got no database: call configureKnex or configureMongo of the host first`)
}
