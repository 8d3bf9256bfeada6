import type { Knex } from 'knex'
import type { Db } from 'mongodb'
import type { HostStore } from '../../backend/src/graph/host-store.js'
import { sharedStore as sharedMongoStore } from '../../backend/src/storage/mongo/graph-store.js'
import { sharedStore as sharedSqlStore } from '../../backend/src/storage/sql/graph-store.js'

/** For hosts of overlay engines, such as OverlayExpress: topic managers, lookup services, and the gateway's stores. */
export { default as createNamesLookupService } from '../../backend/src/lookup-services/NamesLookupServiceFactory.js'
export { default as createNamesLookupServiceOnMongo } from '../../backend/src/lookup-services/NamesLookupServiceMongoFactory.js'
export { default as createOrdinalsLookupService } from '../../backend/src/lookup-services/OrdinalsLookupServiceFactory.js'
export { default as createOrdinalsLookupServiceOnMongo } from '../../backend/src/lookup-services/OrdinalsLookupServiceMongoFactory.js'
export type { Deployment } from '../../backend/src/protocol/mint.js'
export { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
export { deploymentOf, PROFILES, type Profile, type ProfileName } from '../../backend/src/protocol/profile.js'
export {
  default as NamesTopicManager,
  type NamesTopicManagerOptions,
} from '../../backend/src/topic-managers/NamesTopicManager.js'
export {
  default as OrdinalsTopicManager,
  type OrdinalsTopicManagerOptions,
} from '../../backend/src/topic-managers/OrdinalsTopicManager.js'
export { attachHostListener, type HostListenerOptions } from './host-listener.js'

/**
 * The stores that `attachGateway` reads, in the database of the host's lookup services. The first use creates their tables.
 */
export function storesOf(database: Knex | Db): { graph: HostStore } {
  const isKnex = typeof database === 'function'
  return { graph: isKnex ? sharedSqlStore(database) : sharedMongoStore(database) }
}
