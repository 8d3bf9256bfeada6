/** Why a mint cannot be made, or a name not be mined; see the functions that throw it. */
export type MiningErrorCode =
  | 'BAD_NAME'
  | 'TAKEN'
  | 'NO_FUNDS'
  | 'BAD_WALLET'
  | 'BAD_INDEX'
  | 'NO_ANSWER'
  | 'NO_TREE'
  | 'OTHER_TREE'
  | 'NOT_ADMITTED'

export class MiningError extends Error {
  override readonly name = 'MiningError'

  constructor(
    readonly code: MiningErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options)
  }
}

/** Somebody else has spent the node: the solution is worth nothing, and mining goes on from the new one. */
export class NodeMovedError extends Error {
  readonly code = 'NODE_MOVED'
  override readonly name = 'NodeMovedError'
}
