import { CommanderError } from 'commander'
import { MintError } from '../../backend/src/protocol/mint-error.js'
import { HeadersError } from '../client/proof-error.js'
import { ResolutionError, type ResolutionErrorCode } from '../client/resolution-error.js'
import { ChainSourceError } from '../follow/chain-source.js'
import { CrawlError } from '../follow/crawl-error.js'
import { CovenantError } from '../mining/covenant.js'
import { MiningError, type MiningErrorCode } from '../mining/mining-error.js'
import { SearchError } from '../mining/search/search-error.js'
import { PublishError } from '../publish/publish-error.js'
import { ChainTrackerError } from '../server/chain/chain-tracker.js'
import { ConfigError } from '../server/config/config.js'
import { StartError } from '../server/config/errors.js'
import { BackupError } from '../server/store/backup/backup-tables.js'
import { CommandError, InterruptedError } from './command-error.js'
import { ImportError } from './import-files.js'

/** What the process exits with: `docs/cli.md`. */
export const EXIT_CODES = {
  ok: 0,
  /** It went wrong, and no other code says how. */
  failure: 1,
  /** The command line, a setting or an input file is not what it should be; nothing was done. */
  usage: 2,
  /** What was asked for does not exist. */
  notFound: 3,
  /** What was handed in was refused, or nothing of it was admitted. */
  refused: 4,
  /** A server, a database or a service cannot be reached, or the store cannot be opened: try again. */
  unavailable: 5,
} as const

export type ExitCode = keyof typeof EXIT_CODES

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

const OF_RESOLUTION: Record<ResolutionErrorCode, ExitCode> = {
  BAD_NAME: 'usage',
  BAD_SOURCE: 'usage',
  NOT_CLAIMED: 'notFound',
  NO_PROOF: 'failure',
  DISAGREEMENT: 'failure',
}

const OF_MINING: Record<MiningErrorCode, ExitCode> = {
  BAD_NAME: 'usage',
  TAKEN: 'refused',
  NO_FUNDS: 'failure',
  OVER_BUDGET: 'refused',
  BAD_PROOF: 'failure',
  NO_RIVAL: 'failure',
  UNDECIDED: 'unavailable',
  BAD_WALLET: 'failure',
  BAD_INDEX: 'failure',
  NO_ANSWER: 'unavailable',
  NO_TREE: 'notFound',
  NEWER_COVENANT: 'usage',
  OTHER_TREE: 'usage',
  NOT_ADMITTED: 'refused',
}

/** Errors that are reported by their message alone: whoever runs the command can do something about them. */
const EXPECTED: [kind: new (...args: never[]) => Error, exit: ExitCode][] = [
  [BackupError, 'failure'],
  [ChainSourceError, 'unavailable'],
  [ChainTrackerError, 'unavailable'],
  [ConfigError, 'usage'],
  [CovenantError, 'failure'],
  [CrawlError, 'failure'],
  [HeadersError, 'unavailable'],
  [ImportError, 'usage'],
  [MintError, 'failure'],
  [PublishError, 'usage'],
  [SearchError, 'failure'],
  [StartError, 'unavailable'],
]

/** An error as a command reports it. */
export interface Failure {
  /** Whether it is one that commands throw on purpose; of any other, the stack tells more than the message. */
  isExpected: boolean
  /** In capitals, for programs; that of the error where it has one. */
  code: string
  exitCode: number
}

export function failureOf(error: unknown): Failure {
  if (error instanceof InterruptedError)
    return { isExpected: true, code: 'INTERRUPTED', exitCode: SIGNALS[error.signal] }
  if (error instanceof CommanderError) return { isExpected: true, code: 'USAGE', exitCode: EXIT_CODES.usage }
  const exit = exitOf(error)
  if (exit === undefined) return { isExpected: false, code: 'INTERNAL', exitCode: EXIT_CODES.failure }
  const { code } = error as { code?: unknown }
  return { isExpected: true, code: typeof code === 'string' ? code : NAMES[exit], exitCode: EXIT_CODES[exit] }
}

const NAMES: Record<ExitCode, string> = {
  ok: 'OK',
  failure: 'FAILED',
  usage: 'USAGE',
  notFound: 'NOT_FOUND',
  refused: 'REFUSED',
  unavailable: 'UNAVAILABLE',
}

function exitOf(error: unknown): ExitCode | undefined {
  if (error instanceof CommandError) return error.exit
  if (error instanceof ResolutionError) {
    // Nothing was shown to check because nobody answered: that is another time's question.
    const isUnanswered =
      error.reports.length > 0 && error.reports.every(({ verdict }) => verdict === 'failed')
    return isUnanswered ? 'unavailable' : OF_RESOLUTION[error.code]
  }
  if (error instanceof MiningError) return OF_MINING[error.code]
  return EXPECTED.find(([kind]) => error instanceof kind)?.[1]
}
