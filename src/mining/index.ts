/** Mining of names, for wallets and pages that mine, and for people who deploy trees. */
export {
  COVENANT_LIMITS,
  type CovenantLimits,
  type CovenantVersion,
  type Deployment,
  type DeploymentTerms,
  type Mint,
  MintError,
  type MintErrorCode,
  ownerCommitment,
  type PlacedNode,
} from '../../backend/src/protocol/mint.js'
export type { Outpoint } from '../../backend/src/protocol/outpoint.js'
export { deploymentOf, PROFILES, termsOf } from '../../backend/src/protocol/profile.js'
export type { VerifiedNode } from '../client/verify-name.js'
export type { Headers, Trust } from '../client/verify-transactions.js'
export { budgetFor, type MiningBudget } from './budget.js'
export { CovenantError, type CovenantTerms, covenantCode, rootLock } from './covenant.js'
export { HttpMineIndex, type KnownNodes, type MineIndex, type Shown } from './mine-index.js'
export {
  type MineNameOptions,
  type MiningEvent,
  mineName,
  type Solved,
  type SolveOptions,
  solveNext,
} from './mine-name.js'
export { MiningError, type MiningErrorCode, NodeMovedError } from './mining-error.js'
export {
  finishMint,
  type MintDraft,
  type MintPayer,
  type MintPlan,
  NodeUnlock,
  type PaidMint,
  type SignedMint,
  type SolvedPlan,
  solvePlan,
  unlockNode,
} from './mint-transaction.js'
export {
  SearchError,
  type SearchErrorCode,
  type SearchOptions,
  type SearchProgress,
  searchNonce,
} from './search/search-nonce.js'
export type { LiveNode } from './server-answers.js'
export { type ExpectedDeployment, type ServerDeployment, serverDeployment } from './server-deployment.js'
