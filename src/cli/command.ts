import { setMaxListeners } from 'node:events'
import { InvalidArgumentError } from 'commander'
import { addressLock, type Network } from '../../backend/src/protocol/address.js'
import type { Config } from '../server/config.js'
import type { ExitCode } from './exit-codes.js'
import type { CommandOutput } from './output.js'

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

/** What all commands share. */
export interface CommandContext {
  /** That of the command that runs; known when its action is called. */
  output: CommandOutput
  /** Takes the secrets of the settings out of a text. */
  hideSecrets: (text: string) => string
}

/** A parser for options that are whole numbers within bounds. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d{1,10}$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** The level of a log beside a command's own output: what goes well is told there. */
export function quieter(level: Config['logLevel']): Config['logLevel'] {
  return level === 'info' ? 'warn' : level
}

/** Where a server listens that was started with the same settings on this machine. */
export const DEFAULT_URL = `http://127.0.0.1:${process.env.PORT || 8080}`

/** A signal that ends a command between two of its steps. */
export interface Interruption {
  /** Aborted by SIGINT or SIGTERM; its reason is an {@link InterruptedError}. */
  signal: AbortSignal
  /** Runs work; what it throws after a signal is reported as the interruption that it is. */
  during<Result>(work: () => Promise<Result>): Promise<Result>
}

/** Takes SIGINT and SIGTERM once; a second one ends the process as it would any other. */
export function untilSignal(): Interruption {
  const stop = new AbortController()
  // Each request under way listens to it.
  setMaxListeners(0, stop.signal)
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new InterruptedError(name)))
  return {
    signal: stop.signal,
    async during(work) {
      try {
        return await work()
      } catch (error) {
        throw stop.signal.aborted ? stop.signal.reason : error
      }
    },
  }
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
  throw new CommandError(`${why}: ${JSON.stringify(address)}`, { exit: 'usage' })
}
