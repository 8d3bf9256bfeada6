import { CodedError, GeneralError } from '../../backend/src/protocol/coded-error.js'

/** Why a mint cannot be made, or a name cannot be mined. */
export type MiningErrorCode =
  /** Not a name that this tree can hold. */
  | 'BAD_NAME'
  /** Somebody else has the name. */
  | 'TAKEN'
  /** The coins do not cover the cost. */
  | 'NO_FUNDS'
  /** It would cost more than the caller allows. */
  | 'OVER_BUDGET'
  /** The wallet makes another transaction than requested, or refuses. */
  | 'BAD_WALLET'
  /** The server gives an invalid answer. */
  | 'BAD_INDEX'
  /** The server shows a node with an invalid proof; `cause` is the ProofError. */
  | 'BAD_PROOF'
  /** The server rejects a mint because of a conflicting one, and does not show that one. */
  | 'NOT_SHOWN'
  /** The network rejects a paid transaction, or another one has spent its inputs. */
  | 'REFUSED'
  /** A paid transaction may or may not count: the network or a block decides. */
  | 'UNDECIDED'
  | 'NO_ANSWER'
  /** The server has not followed the tree to its end yet: the nodes that it knows may be spent. */
  | 'NOT_CAUGHT_UP'
  /** The server follows no tree, or is not a minetree server. */
  | 'NO_TREE'
  /** This release does not know the covenant's rules. */
  | 'NEWER_COVENANT'
  /** The server follows another tree or network than the user's settings. */
  | 'OTHER_TREE'
  | 'NOT_ADMITTED'

export class MiningError extends GeneralError<MiningErrorCode> {
  override readonly name = 'MiningError'
}

/** An index says that somebody else has spent the node. */
export class NodeMovedError extends CodedError {
  override readonly name = 'NodeMovedError'
  readonly code = 'NODE_MOVED'

  /** A transaction that has spent the node, if the index names one. */
  readonly by: string | undefined

  constructor(message: string, { by, ...details }: { by?: string | undefined; cause?: unknown } = {}) {
    super(message, details)
    this.by = by
  }
}
