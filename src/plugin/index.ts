export type { LookupService, TopicManager } from '../../backend/src/graph/overlay-interfaces.js'
export type {
  HostDatabase,
  MongoDatabase,
  SqlDatabase,
} from '../../backend/src/host/host-database.js'
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
export { attachFollower } from './attach-follower.js'
export type {
  FollowerLogger,
  FollowerOptions,
  FollowerStatus,
  HostEngine,
  HostFollower,
  HostTracker,
} from './follower-options.js'
export { attachHostListener, type HostListenerOptions } from './host-listener.js'
export { type HostStores, storesOf } from './stores-of.js'
