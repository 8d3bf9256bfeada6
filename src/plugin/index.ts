import type { AnsweringService } from '../../backend/src/graph/answering-service.js'
import { BlocklistFilter } from '../../backend/src/graph/blocklist-filter.js'
import type { HostDatabase } from '../../backend/src/graph/host-database.js'
import type { HostStore } from '../../backend/src/graph/host-store.js'
import { hostedIndex } from '../../backend/src/host/hosted-index.js'
import { answeringServices, type NamesOptions } from '../../backend/src/lookup-services/answering-services.js'
import { attachFollower as attach } from './attach-follower.js'
import type { FollowerOptions, HostFollower } from './follower-options.js'

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
export type {
  FollowerLogger,
  FollowerOptions,
  FollowerStatus,
  HostEngine,
  HostFollower,
  HostTracker,
} from './follower-options.js'
export { attachHostListener, type HostListenerOptions } from './host-listener.js'

export interface HostStores {
  graph: HostStore
  /** `ls_names` and `ls_ordinals`, as `attachGateway` answers them from the index. */
  lookupServices: (options: NamesOptions) => Record<string, AnsweringService>
}

/**
 * The stores that `attachGateway` reads, in the database of the host's lookup services. The first use creates their
 * tables.
 *
 * @param database What the host has after `configureKnex` or `configureMongo`: its `knex` or its `mongoDb`.
 * @throws TypeError if the host has not connected to it yet.
 */
export function storesOf(database: HostDatabase | undefined): HostStores {
  if (database === undefined)
    throw new TypeError('storesOf got no database: call configureKnex or configureMongo of the host first')
  const { store: graph } = hostedIndex(database)
  return { graph, lookupServices: (options) => answeringServices(new BlocklistFilter(graph), options) }
}

/**
 * Follows the chain in the host of an engine, as our own server does (`docs/follow.md`): a host with an empty database gets all
 * names that exist. What it finds enters the index of the plugin like anything else, and the engine of the host admits it. Of several
 * processes that share the database one follows.
 *
 * Call it once the services of the host and its engine are configured.
 *
 * @param database The one of the services: the host's `knex` or `mongoDb`.
 * @throws TypeError without a database, or without `ls_names`; ConfigError for an invalid setting. What goes wrong later is written to the
 * standard error, or passed to `onFailure` of the services, and is in `status()`.
 */
export const attachFollower: (database: HostDatabase | undefined, options?: FollowerOptions) => HostFollower =
  attach
