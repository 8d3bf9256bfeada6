import type { AdmittanceInstructions, LookupQuestion, Script } from '@bsv/sdk'

/**
 * What `@bsv/overlay` 2.x asks of topic managers and lookup services. It is in no registry that tests may ask, so that this
 * says it once more; what 0.4 has not is said beside it.
 */
export interface TopicManager2 {
  identifyAdmissibleOutputs: (
    beef: number[],
    previousCoins: number[],
    offChainValues?: number[],
    /** New: how the transaction came. */
    mode?: 'historical-tx' | 'current-tx' | 'historical-tx-no-spv',
    /** New: set where nothing is to be admitted yet. */
    context?: { dryRun?: boolean },
  ) => Promise<AdmittanceInstructions>
  /** New: what was to be admitted could not be broadcast. */
  abortAdmissibleOutputs?: (beef: number[], outputsToAbort: number[]) => Promise<void> | void
  identifyNeededInputs?: (
    beef: number[],
    offChainValues?: number[],
  ) => Promise<{ txid: string; outputIndex: number }[]>
  getDocumentation: () => Promise<string>
  getMetaData: () => Promise<MetaData>
}

interface MetaData {
  name: string
  shortDescription: string
  iconURL?: string
  version?: string
  informationURL?: string
}

interface Output {
  txid: string
  outputIndex: number
  topic: string
}

type Admitted =
  | (Output & { mode: 'locking-script'; satoshis: number; lockingScript: Script; offChainValues?: number[] })
  | (Omit<Output, 'txid'> & { mode: 'whole-tx'; atomicBEEF: number[]; offChainValues?: number[] })

type Spent =
  | (Output & { mode: 'none' })
  | (Output & { mode: 'txid'; spendingTxid: string })
  | (Output & {
      mode: 'script'
      spendingTxid: string
      inputIndex: number
      unlockingScript: Script
      sequenceNumber: number
      offChainValues?: number[]
    })
  | (Output & { mode: 'whole-tx'; spendingAtomicBEEF: number[]; offChainValues?: number[] })

export interface LookupService2 {
  readonly admissionMode: 'locking-script' | 'whole-tx'
  readonly spendNotificationMode: 'none' | 'txid' | 'script' | 'whole-tx'
  outputAdmittedByTopic: (payload: Admitted) => Promise<void> | void
  outputSpent?: (payload: Spent) => Promise<void> | void
  outputNoLongerRetainedInHistory?: (txid: string, outputIndex: number, topic: string) => Promise<void> | void
  outputEvicted: (txid: string, outputIndex: number) => Promise<void> | void
  lookup: (question: LookupQuestion) => Promise<Formula>
  getDocumentation: () => Promise<string>
  getMetaData: () => Promise<MetaData>
}

type Formula = {
  txid: string
  outputIndex: number
  history?: ((beef: number[], outputIndex: number, currentDepth: number) => Promise<boolean>) | number
  context?: number[]
}[]
