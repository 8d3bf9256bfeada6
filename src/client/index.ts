/** For wallets and apps: what a name is, by a genesis outpoint and block headers, whoever answers. */
export type { Deployment } from '../../backend/src/protocol/mint.js'
export { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
export { deploymentOf, PROFILES, type Profile, type ProfileName } from '../../backend/src/protocol/profile.js'
export { boundedHttpClient, type FetchOptions, type HttpClientBounds } from './bounded-fetch.js'
export type { ReadOptions } from './bundle.js'
export { CheckWorkerError } from './check-in-worker.js'
export { HttpNameSource, type HttpNameSourceOptions } from './http-source.js'
export { LookupNameSource, type LookupNameSourceOptions } from './lookup-source.js'
export { type VerifiedHistory, verifyNameHistory } from './name-history.js'
export { type NameTrust, type VerifiedMint, type VerifiedName, verifyNameProof } from './name-proof.js'
export type {
  AskBounds,
  Evidence,
  IndexAnswer,
  IndexReply,
  NameSource,
} from './name-source.js'
export { type VerifiedNode, verifyNode } from './node-proof.js'
export { HeadersError, ProofError, type ProofErrorCode } from './proof-error.js'
export { type VerifiedStep, type VerifiedTip, verifyProvenance } from './provenance.js'
export { ResolutionError, type ResolutionErrorCode } from './resolution-error.js'
export {
  type IndexReport,
  type ResolvedName,
  type ResolveOptions,
  resolveName,
  type SpendStatus,
} from './resolve.js'
export { SourceError, type SourceErrorCode } from './source-error.js'
export type { Headers, Trust } from './vouch.js'
