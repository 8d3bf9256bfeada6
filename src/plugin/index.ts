import type { HostDatabase } from '../../backend/src/graph/host-database.js'
import type { HostStore } from '../../backend/src/graph/host-store.js'
import { hostedIndex } from '../../backend/src/host/hosted-index.js'

export type {
  HostDatabase,
  MongoDatabase,
  SqlDatabase,
} from '../../backend/src/graph/host-database.js'
export type { LookupService, TopicManager } from '../../backend/src/graph/overlay-interfaces.js'
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
 * The stores that `attachGateway` reads, in the database of the host's lookup services. The first use creates their
 * tables.
 *
 * @param database What the host has after `configureKnex` or `configureMongo`: its `knex` or its `mongoDb`.
 * @throws TypeError if the host has not connected to it yet.
 */
export function storesOf(database: HostDatabase | undefined): { graph: HostStore } {
  if (database === undefined)
    throw new TypeError('storesOf got no database: call configureKnex or configureMongo of the host first')
  return { graph: hostedIndex(database).store }
}
