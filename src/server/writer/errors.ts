import type { LostConflictError } from '../../../backend/src/graph/errors.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { AnswerError } from '../../gateway/http/errors.js'

/** A submission refused for its contents: it would be refused again. */
export class SubmissionError extends AnswerError {}

/** The first line of a verifier's message, cut short: it may quote a stranger, and the script's stack follows it. */
export function verdictOf(error: unknown): string {
  const [reason = ''] = messageOf(error).split('\n')
  return reason.length > 300 ? `${reason.slice(0, 300)}…` : reason
}

/** A submission spends what an admitted transaction already spends, or the network rejected it. */
export class ConflictError extends SubmissionError {
  override readonly name = 'ConflictError'
  declare readonly data: { txid: string }

  /** The answer's `txid` is the transaction that counts, or the submitted one if the network rejected it. */
  constructor(readonly lost: Pick<LostConflictError, 'message' | 'txid' | 'reason'>) {
    super('CONFLICT', lost.message, { data: { txid: lost.reason.txid } })
  }
}
