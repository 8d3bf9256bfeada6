import { CodedError } from '../../../backend/src/protocol/coded-error.js'

/** An invalid setting. The message is one line and names the setting. */
export class ConfigError extends CodedError<'USAGE'> {
  override readonly name = 'ConfigError'

  constructor(message: string, options?: { cause?: unknown }) {
    super('USAGE', message, options)
  }
}

/** Why the server cannot start, in one line. */
export class StartError extends CodedError<'UNAVAILABLE'> {
  override readonly name = 'StartError'

  constructor(message: string, options?: { cause?: unknown }) {
    super('UNAVAILABLE', message, options)
  }
}

/** What went wrong, in one line; after trying several addresses, Node gives nothing but a code. */
export function reasonOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown }
  return String(message || code || error).split('\n')[0] ?? ''
}
