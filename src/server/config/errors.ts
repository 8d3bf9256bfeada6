import { CodedError } from '../../../backend/src/protocol/coded-error.js'

/** An invalid setting. The message is one line and names the setting. */
export class ConfigError extends CodedError {
  override readonly name = 'ConfigError'
  readonly code = 'USAGE'
}

/** Why the server cannot start, in one line. */
export class StartError extends CodedError {
  override readonly name = 'StartError'
  readonly code = 'UNAVAILABLE'
}

/** What went wrong, in one line; after trying several addresses, Node gives nothing but a code. */
export function reasonOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown }
  return String(message || code || error).split('\n')[0] ?? ''
}
