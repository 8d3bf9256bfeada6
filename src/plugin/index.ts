/** For hosts of overlay engines, as OverlayExpress: what they configure, and what the gateway reads. */
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
export { storesOf } from './stores-of.js'
