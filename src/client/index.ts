/** For wallets and apps: resolves and verifies names, trusting only a genesis outpoint and block headers. */
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
  type IndexReport,
  ResolutionError,
  type ResolutionErrorCode,
  type ResolvedName,
  type ResolveOptions,
  resolveName,
  type SpendStatus,
} from './resolve.js'
export { IndexedDbSegmentStore, MemorySegmentStore, type SegmentStore } from './segment-store.js'
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
export type { Headers, Trust } from './verify-transactions.js'
