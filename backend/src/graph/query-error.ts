import { CodedError } from '../protocol/coded-error.js'

/** A question that this lookup service has no form for; the message says which forms there are. */
export class QueryError extends CodedError<'BAD_BODY'> {
  override readonly name = 'QueryError'

  constructor(message: string, options?: { cause?: unknown }) {
    super('BAD_BODY', message, options)
  }
}
