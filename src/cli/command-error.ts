/** Why a command cannot do what it was asked to, in one line. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
}
