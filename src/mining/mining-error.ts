import { CodedError } from '../../backend/src/protocol/coded-error.js'

/** Why a mint cannot be made, or a name not be mined. */
export type MiningErrorCode =
  /** Not a name that this tree can hold. */
  | 'BAD_NAME'
  /** Somebody has the name. */
  | 'TAKEN'
  /** The coins do not pay for the mint. */
  | 'NO_FUNDS'
  /** It would cost more than the caller allows. */
  | 'OVER_BUDGET'
  /** The wallet makes another transaction than it was asked for, or refuses. */
  | 'BAD_WALLET'
  /** The server is not a minetree server, or answers another question. */
  | 'BAD_INDEX'
  /** The server shows a node that does not hold; `cause` is the ProofError. */
  | 'BAD_PROOF'
  /** The server refuses a mint because of another one, and does not show it. */
  | 'NO_RIVAL'
  /** The network has taken a mint, and the server shows another one in its place: a block decides. */
  | 'UNDECIDED'
  | 'NO_ANSWER'
  /** The server follows no tree. */
  | 'NO_TREE'
  /** The covenant of the tree has rules that this release does not know. */
  | 'NEWER_COVENANT'
  /** The server follows another tree, or another network, than the caller means. */
  | 'OTHER_TREE'
  | 'NOT_ADMITTED'

export class MiningError extends CodedError<MiningErrorCode> {
  override readonly name = 'MiningError'
}

/** An index says that somebody else has spent the node. */
export class NodeMovedError extends CodedError<'NODE_MOVED'> {
  override readonly name = 'NodeMovedError'

  constructor(message: string, options?: { cause?: unknown }) {
    super('NODE_MOVED', message, options)
  }
}
