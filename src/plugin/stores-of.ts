import type { Knex } from 'knex'
import type { Db } from 'mongodb'
import type { HostStore } from '../../backend/src/graph/host-store.js'
import { sharedStore as sharedMongoStore } from '../../backend/src/storage/mongo/graph-store.js'
import { sharedStore as sharedSqlStore } from '../../backend/src/storage/sql/graph-store.js'

/**
 * The stores that `attachGateway` reads, over the database of the host's lookup services. On SQL their migrations have to
 * have run before the first request; OverlayExpress runs them in `start`.
 */
export function storesOf(database: Knex | Db): { graph: HostStore } {
  const isKnex = typeof database === 'function'
  return { graph: isKnex ? sharedSqlStore(database) : sharedMongoStore(database) }
}
