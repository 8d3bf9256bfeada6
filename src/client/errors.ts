import { CodedError } from '../../backend/src/protocol/coded-error.js'

/** What is wrong with a proof; one code for each kind of failure. */
export type ProofErrorCode =
  /** Not one whole BEEF of transactions, each once, parents before children, its subject among them. */
  | 'BAD_BEEF'
  /** More bytes than the caller takes, or more inputs and outputs than a proof can need. */
  | 'TOO_LARGE'
  /** Two of its transactions spend one coin: no chain holds both. */
  | 'DOUBLE_SPEND'
  /** The transaction of the configured genesis is not in it. */
  | 'NO_GENESIS'
  /** A transaction spends a node of the tree and breaks a rule of mints; `cause` is the MintError. */
  | 'BAD_MINT'
  /** What it shows as a name comes of no mint that descends from the genesis. */
  | 'NOT_IN_TREE'
  /** It proves another name, or another output of the mint. */
  | 'OTHER_NAME'
  /** The index says one origin, and proves another. */
  | 'OTHER_ORIGIN'
  /** The index says one current output, and shows the way of the ordinal to others only. */
  | 'OTHER_TIP'
  /** A merkle path that does not hold together, or that leads to a root which no block of that height has. */
  | 'BAD_PATH'
  /** Neither proven nor with all that it spends. */
  | 'UNVERIFIED'
  /** An unproven transaction that no block can hold: its scripts fail, or it makes money. */
  | 'BAD_SCRIPT'
  /** Scripts that would take more work than the caller spends on them (`maxScriptWork`). */
  | 'TOO_COSTLY'
  /** Scripts that run longer than the caller waits. */
  | 'SCRIPT_TIMEOUT'
  /** A transaction without a block, where the caller asked for proofs. */
  | 'UNPROVEN'
  /** The ordinal does not go from the origin to the tip by the transactions that are shown. */
  | 'NOT_DESCENDED'
  /** What is shown itself tells that the ordinal has left the tip. */
  | 'STALE_TIP'
  /** The value of a coin that stands before the ordinal is not shown, so that nobody can tell where it went. */
  | 'UNPLACED'

/** A proof that does not hold. The message is one line and says what of it does not. */
export class ProofError extends CodedError<ProofErrorCode> {
  override readonly name = 'ProofError'
}

/** The caller's chain tracker did not answer: nothing can be said of a proof, good or bad. */
export class HeadersError extends CodedError<'NO_HEADERS'> {
  override readonly name = 'HeadersError'

  constructor(message: string, options?: { cause?: unknown }) {
    super('NO_HEADERS', message, options)
  }
}

/** Why an index gave no answer that could be checked. */
export type SourceErrorCode =
  /** It could not be reached, hung up, or sent the question on to somewhere else. */
  | 'UNREACHABLE'
  /** It took longer than the caller waits. */
  | 'TIMEOUT'
  /** Its answer is longer than the caller takes. */
  | 'TOO_LARGE'
  /** It answers something that is no answer to the question. */
  | 'BAD_ANSWER'
  /** It says that the name is claimed, and shows no proof. */
  | 'NO_PROOF'

/** An index that gave no answer that could be checked. The message is one line. */
export class SourceError extends CodedError<SourceErrorCode> {
  override readonly name = 'SourceError'
}
