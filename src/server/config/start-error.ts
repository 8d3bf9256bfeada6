/** Why the service cannot start, in one line. */
export class StartError extends Error {
  override readonly name = 'StartError'
}
