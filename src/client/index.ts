/** For wallets and apps: resolves and verifies names, trusting only a genesis outpoint and block headers. */
export { confusablesAmong, skeletonOf } from '../../backend/src/protocol/confusable-names.js'
export type {
  BindingLayout,
  BindingProfile,
  BindingProtocol,
} from '../../backend/src/protocol/identity-binding.js'
export type { Deployment } from '../../backend/src/protocol/mint.js'
export { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
export { deploymentOf, PROFILES, type Profile, type ProfileName } from '../../backend/src/protocol/profile.js'
export { boundedHttpClient, type FetchOptions, type HttpClientBounds } from './bounded-fetch.js'
export type { ReadOptions } from './bundle.js'
export { CheckWorkerError } from './check-in-worker.js'
export { HeadersError, ProofError, type ProofErrorCode, SourceError, type SourceErrorCode } from './errors.js'
export type { KnownPlaces } from './known-name.js'
export { LookupNameSource, type LookupNameSourceOptions } from './lookup-source.js'
export type {
  AskBounds,
  Evidence,
  IndexAnswer,
  IndexReply,
  NameSource,
} from './name-source.js'
export { HttpNameSource, type HttpNameSourceOptions } from './name-source.js'
export {
  type HeaderSource,
  type HeaderStore,
  OwnHeaders,
  OwnHeadersError,
  type OwnHeadersOptions,
} from './own-headers.js'
export {
  type Freshness,
  type IndexReport,
  isFresh,
  type KnownIdentities,
  ResolutionError,
  type ResolutionErrorCode,
  type ResolvedName,
  type ResolveOptions,
  resolveName,
  type SpendStatus,
} from './resolve.js'
export { IndexedDbSegmentStore, MemorySegmentStore, type SegmentStore } from './segment-store.js'
export { type NameMemory, Segments } from './segments.js'
export {
  SITE_SCRIPTS,
  type SiteConfig,
  type SiteQuestion,
  type SiteVerdict,
  verifiedSitePage,
  verifiedSitePolicy,
} from './site-page.js'
export {
  type GatewayReport,
  type VerificationStep,
  VerifiedFetchError,
  type VerifiedFetchErrorCode,
} from './verified-error.js'
export {
  createVerifiedFetch,
  type GatewayAddress,
  type TipPolicy,
  type VerifiedFetch,
  type VerifiedFetchInit,
  type VerifiedFetchOptions,
  verifiedFetch,
} from './verified-fetch.js'
export type { StreamEnd, TipAgreement, Verification, VerifiedResponse } from './verified-response.js'
export {
  HostedSite,
  type SiteSource,
  serveVerifiedSite,
  siteFetch,
  type VerifiedSite,
  type WorkerScope,
} from './verified-site.js'
export { type BindingFault, type IdentityBinding, verifyBinding } from './verify-binding.js'
export {
  type VerifiedHistory,
  type VerifiedStep,
  type VerifiedTip,
  verifyNameHistory,
  verifyProvenance,
} from './verify-history.js'
export {
  type NameTrust,
  type VerifiedMint,
  type VerifiedName,
  type VerifiedNode,
  verifyNameProof,
  verifyNode,
} from './verify-name.js'
export {
  type ProofCheck,
  type VerifiedOrdinal,
  type VerifiedOutput,
  verifyNextOutput,
  verifyOrdinal,
  verifyOutput,
} from './verify-output.js'
export type { Headers, Trust } from './verify-transactions.js'
