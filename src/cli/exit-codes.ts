import { CommanderError } from 'commander'
import { ChainTrackerError } from '../../backend/src/graph/errors.js'
import { GeneralError } from '../../backend/src/protocol/coded-error.js'
import { MintError } from '../../backend/src/protocol/mint.js'
import { ChainSourceError, FollowError } from '../chain/sources/errors.js'
import { HeadersError } from '../client/errors.js'
import { OwnHeadersError } from '../client/own-headers.js'
import { ResolutionError, type ResolutionErrorCode } from '../client/resolve.js'
import { IdentityError } from '../identity/name-coin.js'
import { CovenantError } from '../mining/covenant.js'
import { MiningError, type MiningErrorCode } from '../mining/mining-error.js'
import { SearchError } from '../mining/search/search-error.js'
import { PublishError } from '../publish/inscribe.js'
import { ConfigError } from '../server/config/config.js'
import { StartError } from '../server/config/errors.js'
import { CommandError, EXIT_CODES, type ExitCode, GENERAL_CODES, InterruptedError } from './command.js'
import type { Failure } from './output.js'

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

/** Codes that are not listed here are failures. */
const OF_RESOLUTION: Partial<Record<ResolutionErrorCode, ExitCode>> = {
  BAD_NAME: 'usage',
  NOT_CLAIMED: 'notFound',
}

const OF_MINING: Partial<Record<MiningErrorCode, ExitCode>> = {
  BAD_NAME: 'usage',
  TAKEN: 'refused',
  OVER_BUDGET: 'refused',
  REFUSED: 'refused',
  UNDECIDED: 'unavailable',
  NO_ANSWER: 'unavailable',
  NOT_CAUGHT_UP: 'unavailable',
  NO_TREE: 'notFound',
  NEWER_COVENANT: 'usage',
  OTHER_TREE: 'usage',
  NOT_ADMITTED: 'refused',
}

/** Errors that are reported by their message alone: the user can do something about them. */
const EXPECTED: [kind: new (...args: never[]) => Error, exit: ExitCode][] = [
  [ChainSourceError, 'unavailable'],
  [ChainTrackerError, 'unavailable'],
  [ConfigError, 'usage'],
  [CovenantError, 'failure'],
  [FollowError, 'failure'],
  [HeadersError, 'unavailable'],
  [IdentityError, 'refused'],
  [MintError, 'failure'],
  [OwnHeadersError, 'unavailable'],
  [SearchError, 'failure'],
  [StartError, 'unavailable'],
]

/** The same for errors without a class of their own. */
const OF_CODE: Readonly<Record<string, ExitCode>> = {
  FAILED: 'failure',
  NOT_FOUND: 'notFound',
  JOURNAL: 'unavailable',
}

export function failureOf(error: unknown): Failure {
  if (error instanceof InterruptedError)
    return { isExpected: true, code: error.code, exitCode: SIGNALS[error.signal] }
  if (error instanceof CommanderError) return { isExpected: true, code: 'USAGE', exitCode: EXIT_CODES.usage }
  const exit = exitOf(error)
  if (exit === undefined) return { isExpected: false, code: 'INTERNAL', exitCode: EXIT_CODES.failure }
  const { code } = error as { code?: unknown }
  return {
    isExpected: true,
    code: typeof code === 'string' ? code : GENERAL_CODES[exit],
    exitCode: EXIT_CODES[exit],
  }
}

function exitOf(error: unknown): ExitCode | undefined {
  if (error instanceof CommandError) return error.exit
  if (error instanceof ResolutionError) {
    // If no index answered, trying again later may help.
    const isUnanswered =
      error.reports.length > 0 && error.reports.every(({ verdict }) => verdict === 'failed')
    return isUnanswered ? 'unavailable' : (OF_RESOLUTION[error.code] ?? 'failure')
  }
  if (error instanceof MiningError) return OF_MINING[error.code] ?? 'failure'
  if (error instanceof PublishError) return error.code === 'NO_SUCH_STATE' ? 'notFound' : 'usage'
  const kind = EXPECTED.find(([kind]) => error instanceof kind)?.[1]
  return kind ?? (error instanceof GeneralError ? OF_CODE[error.code] : undefined)
}
