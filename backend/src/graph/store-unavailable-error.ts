/** The database cannot be reached, or had no turn for a write: nothing of it was written, or it may be told again. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError'

  constructor(cause: unknown) {
    super('the database does not respond; try again', { cause })
  }
}
