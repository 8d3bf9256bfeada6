/** The covenant of a mine tree, for those who deploy one. */
export { COVENANT_LIMITS, type CovenantLimits } from '../../backend/src/protocol/covenant-limits.js'
export { CovenantError, type CovenantTerms, covenantCode, rootLock } from './covenant.js'
