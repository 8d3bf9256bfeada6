import { InvalidArgumentError } from 'commander'
import type { Config } from '../server/config/config.js'
import type { CommandOutput } from './output.js'

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
