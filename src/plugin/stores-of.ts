import type { Knex } from 'knex'
import { sharedStore } from '../../backend/src/storage/sql/shared-store.js'
import type { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'

/**
 * The stores that `attachGateway` reads, over the database of the host's lookup services. Their migrations have to have
 * run before the first request; OverlayExpress runs them in `start`.
 */
export function storesOf(knex: Knex): { graph: SqlGraphStore } {
  return { graph: sharedStore(knex) }
}
