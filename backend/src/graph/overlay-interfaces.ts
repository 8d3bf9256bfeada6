/**
 * The interfaces of overlay engines, as far as this package uses them: `@bsv/overlay` 0.4, 0.6 and 2.x all accept their
 * implementations. They use no type of another package, as a host may have other copies and versions of it: a class of one copy
 * is not assignable to the same class of another.
 */
export interface TopicManager {
  identifyAdmissibleOutputs(
    beef: number[] | Uint8Array,
    previousCoins: number[],
    offChainValues?: number[],
    mode?: SubmitMode,
    context?: AdmittanceContext,
  ): Promise<AdmittanceInstructions>
  /** From 2.6 on: a transaction that was judged is not admitted after all, as it could not be broadcast. */
  abortAdmissibleOutputs?(beef: number[] | Uint8Array): void
  identifyNeededInputs?(
    beef: number[] | Uint8Array,
    offChainValues?: number[],
  ): Promise<{ txid: string; outputIndex: number }[]>
  getDocumentation(): Promise<string>
  getMetaData(): Promise<ServiceMetadata>
}

/** What the manager of a topic says about it, where a store decides what is admitted. */
export type Topic = Pick<TopicManager, 'identifyNeededInputs' | 'getDocumentation' | 'getMetaData'>

/** How a transaction came to an engine, as engines from 0.6 on say. */
export type SubmitMode = 'historical-tx' | 'current-tx' | 'historical-tx-no-spv'

/** Further context from engines since 2.6. */
export interface AdmittanceContext {
  /** Nothing is admitted yet, so nothing may be remembered. */
  dryRun?: boolean
}

export interface AdmittanceInstructions {
  outputsToAdmit: number[]
  coinsToRetain: number[]
  coinsRemoved?: number[]
}

export interface LookupService {
  readonly admissionMode: 'locking-script' | 'whole-tx'
  readonly spendNotificationMode: 'none' | 'txid' | 'script' | 'whole-tx'
  outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> | void
  outputSpent?(payload: OutputSpent): Promise<void> | void
  outputEvicted(txid: string, outputIndex: number): Promise<void> | void
  lookup(question: LookupQuestion): Promise<LookupFormula>
  getDocumentation(): Promise<string>
  getMetaData(): Promise<ServiceMetadata>
}

interface TopicOutput {
  txid: string
  outputIndex: number
  topic: string
}

export type OutputAdmittedByTopic =
  | (TopicOutput & { mode: 'locking-script' })
  | (Omit<TopicOutput, 'txid'> & { mode: 'whole-tx'; atomicBEEF: number[] })

export type OutputSpent =
  | (TopicOutput & { mode: 'none' })
  | (TopicOutput & { mode: 'txid' | 'script'; spendingTxid: string })
  | (TopicOutput & { mode: 'whole-tx'; spendingAtomicBEEF: number[] })

export interface LookupQuestion {
  service: string
  query: unknown
}

/** The outputs that answer a question. */
export type LookupFormula = {
  txid: string
  outputIndex: number
}[]

/** Metadata of a topic manager or lookup service, shown on the host's page. */
export interface ServiceMetadata {
  name: string
  shortDescription: string
  iconURL?: string
  version?: string
  informationURL?: string
}

/** A chain tracker of any copy of the SDK. */
export interface RootChecker {
  isValidRootForHeight(root: string, height: number): Promise<boolean>
  currentHeight?(): Promise<number>
}
