import { createInterface } from 'node:readline/promises'
import { CommandError } from './command-error.js'
import type { CommandOutput } from './output.js'

/** Asks whoever runs a command; undefined where nobody is there to be asked. */
export type Ask = (question: string) => Promise<string>

/** Asks on the terminal: standard input and standard error have to be one. */
export function terminalAsk(signal: AbortSignal): Ask | undefined {
  const { stdin, stderr } = process
  if (!stdin.isTTY || !stderr.isTTY) return undefined
  return async (question) => {
    const terminal = createInterface({ input: stdin, output: stderr })
    try {
      return await terminal.question(question, { signal })
    } finally {
      terminal.close()
    }
  }
}

/**
 * Has whoever runs a command agree before anything is paid.
 *
 * @throws CommandError where that is refused, or where nobody can be asked.
 */
export async function confirmPayment({
  ask,
  isAgreed,
  output,
}: {
  ask: Ask | undefined
  /** `--yes`. */
  isAgreed: boolean
  output: CommandOutput
}): Promise<void> {
  if (isAgreed) return
  if (ask === undefined)
    throw new CommandError('nothing was paid: add --yes to pay without being asked', { exit: 'usage' })
  const answer = await ask(`${output.errorColors.yellow('minetree:')} pay? [y/N] `)
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new CommandError('nothing was paid', { exit: 'refused' })
}
