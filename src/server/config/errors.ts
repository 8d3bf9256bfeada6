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

/** The reason of an error in one line; after trying several addresses, Node's error has only a code. */
export function reasonOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown }
  return String(message || code || error).split('\n')[0] ?? ''
}

/** What to do about errors at the start, by the codes of Node, TLS, SQLite and MySQL. */
const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there: stop it, or choose another port with --port or PORT',
  EADDRNOTAVAIL:
    'this machine has no such address: choose one that it has with --host or HOST, as 127.0.0.1, or 0.0.0.0 for all',
  ENOTFOUND: 'no host has this name: correct it',
  EAI_AGAIN: 'no name server answers, or no host has this name: correct it, or try again later',
  ECONNREFUSED: 'nothing listens there: start it, or correct the address',
  EACCES:
    'this user has no permission: grant it, or choose another folder (--data) or a port above 1023 (--port)',
  ENOTDIR: 'a file is in its place: choose another folder with --data or DATA_DIR',
  EEXIST: 'a file is in its place: choose another folder with --data or DATA_DIR',
  ENOSPC: 'the disk is full: free some space',
  CERT_HAS_EXPIRED: 'renew the certificate of that server, or correct the clock of this machine',
  ER_ACCESS_DENIED_ERROR: 'correct the user and the password',
}
const SAME: Readonly<Record<string, string>> = {
  EPERM: 'EACCES',
  EROFS: 'EACCES',
  SQLITE_READONLY: 'EACCES',
  UNKNOWN_SQLITE_ERROR_1544: 'EACCES',
  SQLITE_FULL: 'ENOSPC',
  EDQUOT: 'ENOSPC',
}

/** As {@link reasonOf}, with advice if there is some for the error or one of its causes. */
export function reasonWithAdvice(error: unknown): string {
  const reason = reasonOf(error)
  for (let at = error; at !== undefined && at !== null; at = (at as { cause?: unknown }).cause) {
    const code = String((at as { code?: unknown }).code)
    const advice = ADVICE[SAME[code] ?? code]
    if (advice !== undefined) return `${reason}: ${advice}`
  }
  return reason
}
