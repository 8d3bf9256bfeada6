import type { Command } from 'commander'
import type { CommandContext } from './command-context.js'
import { DEFAULT_URL } from './default-url.js'
import type { NameCheckOptions } from './name-check.js'
import { runResolve } from './resolve.js'
import { runVerify } from './verify.js'

interface NameArguments {
  url: string[]
  genesis?: string
  requireProofs: boolean
}

/** Adds `resolve` and `verify`: both check the whole of a name, and say different things of it. */
export function addNameCommands(program: Command, context: CommandContext): void {
  nameCommand(
    program,
    'resolve',
    'say where a name is and whose, once all of it is checked: see docs/resolving.md',
  ).action(async (name: string, options: NameArguments) => {
    await runResolve(checkOptions(name, options, context))
  })
  nameCommand(program, 'verify', 'check a name from the genesis on, and say each step that held').action(
    async (name: string, options: NameArguments) => {
      await runVerify(checkOptions(name, options, context))
    },
  )
}

function nameCommand(program: Command, command: string, description: string): Command {
  return program
    .command(command)
    .description(description)
    .argument('<name>', '1 to 255 characters of a-z 0-9 -')
    .option('--url <url...>', 'the indexes to ask; none of them is believed', [DEFAULT_URL])
    .option('--genesis <outpoint>', 'the tree that is meant, in place of GENESIS')
    .option('--require-proofs', 'take nothing that is in no block', false)
}

function checkOptions(
  name: string,
  { url, genesis, requireProofs }: NameArguments,
  { output }: CommandContext,
): NameCheckOptions {
  return {
    name,
    urls: url,
    requireProofs,
    env: process.env,
    output,
    ...(genesis !== undefined && { genesis }),
  }
}
