import { CodedError, GeneralError } from '../../backend/src/protocol/coded-error.js'

export type ProofErrorCode =
  /** Not one complete BEEF of unique transactions, parents before children, its subject among them. */
  | 'BAD_BEEF'
  /** More bytes than the caller accepts, or more inputs than a proof can need. */
  | 'TOO_LARGE'
  /** Two of its transactions spend the same coin: no chain holds both. */
  | 'DOUBLE_SPEND'
  /** The transaction of the configured genesis is missing. */
  | 'NO_GENESIS'
  /** A transaction spends a node of the tree and breaks a rule of mints; `cause` is the MintError. */
  | 'BAD_MINT'
  /** The output that it presents as a name or a node does not descend from the genesis. */
  | 'NOT_IN_TREE'
  /** It proves another name, or another output of the mint. */
  | 'OTHER_NAME'
  /** It proves another output than the one asked for. */
  | 'OTHER_OUTPUT'
  /** The index claims one origin and proves another. */
  | 'OTHER_ORIGIN'
  /** The index claims one tip, but the ordinal's path leads only to others. */
  | 'OTHER_TIP'
  /** A malformed merkle path, or one whose root belongs to no block at that height. */
  | 'BAD_PATH'
  /** Neither proven nor shown with everything it spends. */
  | 'UNVERIFIED'
  /** An unproven transaction that no block can hold: a script fails, or it pays out more than it spends. */
  | 'BAD_SCRIPT'
  /** An unproven transaction that no block can hold yet: its lock time is ahead, or it spends a coinbase too early. */
  | 'NOT_FINAL'
  /** Running its scripts would cost more than the caller allows (`maxScriptWork`). */
  | 'TOO_COSTLY'
  /** Its scripts ran longer than the caller allows (`scriptTimeout`). */
  | 'SCRIPT_TIMEOUT'
  /** A transaction is in no block, and the caller requires proofs. */
  | 'UNPROVEN'
  /** The transactions shown do not carry the ordinal from the origin to the tip. */
  | 'NOT_DESCENDED'
  /** The proof itself shows a transaction that spends the tip. */
  | 'STALE_TIP'
  /** The value of an input before the ordinal's is missing, so its destination cannot be computed. */
  | 'UNPLACED'

/** An invalid proof. The message is one line that says what is invalid. */
export class ProofError extends GeneralError<ProofErrorCode> {
  override readonly name = 'ProofError'
}

/** The caller's chain tracker did not answer, so the proof is neither confirmed nor refuted. */
export class HeadersError extends CodedError {
  override readonly name = 'HeadersError'
  readonly code = 'NO_HEADERS'
}

/** Why an index gave no answer that could be checked. */
export type SourceErrorCode =
  /** No connection, a connection that broke, or a redirect. */
  | 'UNREACHABLE'
  /** It took longer than the caller allows. */
  | 'TIMEOUT'
  /** Its answer is longer than the caller allows. */
  | 'TOO_LARGE'
  /** Its answer does not have the expected form. */
  | 'BAD_ANSWER'
  /** It says that the name is claimed, but gives no proof. */
  | 'NO_PROOF'
  /** It has not followed the tree to its end yet, so it does not know whether the name exists; others may. */
  | 'NOT_CAUGHT_UP'

/** An index that gave no answer that could be checked. */
export class SourceError extends GeneralError<SourceErrorCode> {
  override readonly name = 'SourceError'
}
