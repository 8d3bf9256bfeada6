import type { LostConflictError } from '../../../backend/src/graph/errors.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { AnswerError } from '../../gateway/http/errors.js'

/** A submission refused for what it is: submitted again, it is refused again. */
export class SubmissionError extends AnswerError {}

/** The first line of a verifier's message, cut short: it may quote a stranger, and the state of a stack follows it. */
export function verdictOf(error: unknown): string {
  const [reason = ''] = messageOf(error).split('\n')
  return reason.length > 300 ? `${reason.slice(0, 300)}…` : reason
}

/** A submission spends what an admitted transaction already spends, or the network rejected it. */
export class ConflictError extends SubmissionError {
  override readonly name = 'ConflictError'
  declare readonly data: { txid: string }

  /** The transaction that counts is sent as the `txid` of the answer; of a rejected one, its own. */
  constructor(readonly lost: Pick<LostConflictError, 'message' | 'txid' | 'reason'>) {
    super('CONFLICT', lost.message, { data: { txid: lost.reason.txid } })
  }
}
