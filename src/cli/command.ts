import { setMaxListeners } from 'node:events'
import { InvalidArgumentError } from 'commander'
import { addressLock, type Network } from '../../backend/src/protocol/address.js'
import { CodedError, GeneralError } from '../../backend/src/protocol/coded-error.js'
import { type Config, readConfig } from '../server/config/config.js'
import type { CommandOutput } from './output.js'

/** The exit codes of the process: docs/cli.md. */
export const EXIT_CODES = {
  ok: 0,
  /** A failure that no other code describes. */
  failure: 1,
  /** The command line, a setting or an input file is invalid; nothing was done. */
  usage: 2,
  /** What was asked for does not exist. */
  notFound: 3,
  /** The input was rejected, or none of it was admitted. */
  refused: 4,
  /** A server, a database or a service cannot be reached, or the store cannot be opened: try again later. */
  unavailable: 5,
} as const

export type ExitCode = keyof typeof EXIT_CODES

/** Codes of errors without a code of their own. */
export const GENERAL_CODES: Record<ExitCode, string> = {
  ok: 'OK',
  failure: 'FAILED',
  usage: 'USAGE',
  notFound: 'NOT_FOUND',
  refused: 'REFUSED',
  unavailable: 'UNAVAILABLE',
}

/** Why a command cannot do its work, and the exit code of its process. */
export class CommandError extends GeneralError<string> {
  override readonly name = 'CommandError'
  readonly exit: ExitCode

  constructor(message: string, { exit = 'failure', cause }: { exit?: ExitCode; cause?: unknown } = {}) {
    super(GENERAL_CODES[exit], message, { cause })
    this.exit = exit
  }
}

/** The command line, a setting or a file of the user is invalid: nothing was done. */
export function usageError(message: string, cause?: unknown): CommandError {
  return new CommandError(message, { exit: 'usage', ...(cause !== undefined && { cause }) })
}

/** A signal ended the command before it was done. */
export class InterruptedError extends CodedError {
  override readonly name = 'InterruptedError'
  readonly code = 'INTERRUPTED'

  constructor(
    readonly signal: 'SIGINT' | 'SIGTERM',
    message = 'stopped: run the same command again to continue',
  ) {
    super(message)
  }
}

export interface CommandContext {
  /** The running command's output, known when its action is called. */
  output: CommandOutput
  hideSecrets: (text: string) => string
}

/** More than any server accepts in one submission (`MAX_BODY_BYTES`), and about what is held in memory at once. */
export const MAX_TRANSACTION_BYTES = 1024 ** 3
/** The highest fee that a command takes, in satoshis: more than anyone pays. */
export const MAX_SATOSHIS = 1_000_000_000

/** A parser for options that are whole numbers within a range. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d{1,10}$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** The log level for a command, whose own output already reports successes. */
export function quieter(level: Config['logLevel']): Config['logLevel'] {
  return level === 'info' ? 'warn' : level
}

/** The URL of a server on this machine that was started with the same settings. */
export const defaultUrl = (): string => `http://127.0.0.1:${process.env.PORT || 8080}`

/** The context of a running command. */
export interface Running {
  output: CommandOutput
  /** Aborted by SIGINT or SIGTERM; its reason is an {@link InterruptedError}. */
  signal: AbortSignal
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/**
 * Runs a command until it ends, or until SIGINT or SIGTERM comes: any error after that is reported as the interruption. A second
 * signal ends the process as usual.
 */
export async function untilSignal(
  { output }: Pick<CommandContext, 'output'>,
  work: (running: Running) => Promise<void>,
): Promise<void> {
  const stop = new AbortController()
  const { signal } = stop
  // Every open request listens to it.
  setMaxListeners(0, signal)
  const interrupt = (name: InterruptedError['signal']): void => stop.abort(new InterruptedError(name))
  for (const name of SIGNALS) process.once(name, interrupt)
  try {
    await work({ output, signal })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    for (const name of SIGNALS) process.off(name, interrupt)
    // Ends requests that nobody waits for any more.
    stop.abort()
  }
}

/** Reads the settings, and prints their warnings. @throws ConfigError */
export function readSettings({ output }: Pick<CommandContext, 'output'>, env = process.env): Config {
  const config = readConfig(env)
  for (const warning of config.warnings) output.warn(warning)
  return config
}

/**
 * The lock of a P2PKH address on the command line.
 *
 * @param network The network that the address must belong to; by default, either will do.
 * @throws CommandError (`usage`) if it is not such an address.
 */
export function ownerLock(address: string, network?: Network): Uint8Array {
  const lock = addressLock(address, network)
  if (lock instanceof Uint8Array) return lock
  const why = lock === 'other network' ? `not an address of NETWORK=${network}` : 'not a P2PKH address'
  throw usageError(`${why}: ${JSON.stringify(address)}`)
}
