/** A question that this lookup service has no form for; the message says which forms there are. */
export class QueryError extends Error {
  readonly code = 'BAD_BODY'
  override readonly name = 'QueryError'
}
