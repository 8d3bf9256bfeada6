import type { ExitCode } from './exit-codes.js'

/** Why a command cannot do what it was asked to, in one line, and what its process exits with. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exit: ExitCode

  constructor(message: string, { exit = 'failure', cause }: { exit?: ExitCode; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.exit = exit
  }
}

/** A signal ended the command before it was done. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError'

  constructor(
    readonly signal: 'SIGINT' | 'SIGTERM',
    message = 'stopped: run the same command again to continue',
  ) {
    super(message)
  }
}
