import { CommanderError } from 'commander'
import { ChainTrackerError } from '../../backend/src/graph/errors.js'
import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { ChainSourceError, FollowError } from '../chain/sources/errors.js'
import { ResolutionError } from '../client/resolve.js'
import { IdentityError } from '../identity/name-coin.js'
import { CommandError, EXIT_CODES, type ExitCode, InterruptedError } from './command.js'
import type { Failure } from './output.js'

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

/** What errors with these codes mean for a command; any other is a failure. */
const OF_CODE: Readonly<Record<string, ExitCode>> = {
  ...{ USAGE: 'usage', BAD_NAME: 'usage', NEWER_COVENANT: 'usage', OTHER_TREE: 'usage' },
  ...{ BAD_LOCK: 'usage', BAD_CONTENT_TYPE: 'usage', BAD_CHUNK_SIZE: 'usage', BAD_FIRST_OUTPUT: 'usage' },
  ...{ NESTING_TOO_DEEP: 'usage', DIRECTORY_TOO_LARGE: 'usage' },
  ...{ NOT_FOUND: 'notFound', NOT_CLAIMED: 'notFound', NO_TREE: 'notFound', NO_SUCH_STATE: 'notFound' },
  ...{ TAKEN: 'refused', OVER_BUDGET: 'refused', REFUSED: 'refused', NOT_ADMITTED: 'refused' },
  ...{ UNAVAILABLE: 'unavailable', UNDECIDED: 'unavailable', NO_ANSWER: 'unavailable' },
  ...{ NOT_CAUGHT_UP: 'unavailable', JOURNAL: 'unavailable', NO_HEADERS: 'unavailable' },
}

/** The same for classes whose codes do not decide. */
const OF_CLASS: [kind: new (...args: never[]) => Error, exit: ExitCode][] = [
  [ChainSourceError, 'unavailable'],
  [ChainTrackerError, 'unavailable'],
  [FollowError, 'failure'],
  [IdentityError, 'refused'],
]

export function failureOf(error: unknown): Failure {
  if (error instanceof InterruptedError)
    return { isExpected: true, code: error.code, exitCode: SIGNALS[error.signal] }
  if (error instanceof CommanderError) return { isExpected: true, code: 'USAGE', exitCode: EXIT_CODES.usage }
  // Errors with a code are reported by their message alone: the user can do something about them.
  if (error instanceof CodedError)
    return { isExpected: true, code: error.code, exitCode: EXIT_CODES[exitOf(error)] }
  return { isExpected: false, code: 'INTERNAL', exitCode: EXIT_CODES.failure }
}

function exitOf(error: CodedError): ExitCode {
  if (error instanceof CommandError) return error.exit
  // If no index answered, trying again later may help.
  const reports = error instanceof ResolutionError ? error.reports : []
  if (reports.length > 0 && reports.every(({ verdict }) => verdict === 'failed')) return 'unavailable'
  const ofClass = OF_CLASS.find(([kind]) => error instanceof kind)?.[1]
  return ofClass ?? OF_CODE[error.code] ?? 'failure'
}
