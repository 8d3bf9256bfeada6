#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { packageVersion } from '../server/config/package-info.js'
import { hidingSecrets } from '../server/config/redaction.js'
import { escapeControlChars, escapeControlCharsInLines } from '../server/telemetry/escape-control-chars.js'
import { addBlockingCommands } from './blocking-commands.js'
import type { CommandContext } from './command-context.js'
import { type Failure, failureOf } from './exit-codes.js'
import { addLocalCommands } from './local-commands.js'
import { addNameCommands } from './name-commands.js'
import { CommandOutput, hasColors } from './output.js'
import { addStoreCommands } from './store-commands.js'

const hideSecrets = hidingSecrets(process.env)

// Whoever reads may stop, as `head` does: that is their business, and no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

const outputWith = (json: boolean): CommandOutput =>
  new CommandOutput({ stdout: process.stdout, stderr: process.stderr, json, env: process.env })

// Until a command line is read, it is guessed: errors in it are reported the same way.
const context: CommandContext = { output: outputWith(process.argv.includes('--json')), hideSecrets }

const program = new Command('minetree')
  .description(
    'Names that are mined and content that lives on the chain. Settings come from the environment: see the README.',
  )
  .version(packageVersion(), '-V, --version')
  .exitOverride()
  .configureOutput({
    outputError: () => {},
    getOutHasColors: () => hasColors(process.stdout, process.env),
    getErrHasColors: () => hasColors(process.stderr, process.env),
  })
  .configureHelp({
    styleTitle: (text) => context.output.colors.bold(text),
    styleCommandText: (text) => context.output.colors.cyan(text),
    styleOptionTerm: (text) => context.output.colors.green(text),
    styleSubcommandTerm: (text) => context.output.colors.cyan(text),
  })
  .addHelpText('after', '\nExit codes: docs/cli.md. LOG_LEVEL=debug shows where an error comes from.')
  .hook('preAction', (_program, command) => {
    context.output = outputWith(command.opts<{ json: boolean }>().json)
  })

addStoreCommands(program, context)
addLocalCommands(program, context)
addNameCommands(program, context)
addBlockingCommands(program, context)
for (const command of program.commands) command.option('--json', 'print results as JSON', false)

/** One line of what went wrong, with the stack where the log is that detailed. */
function textOf(error: unknown, { isExpected }: Failure): string {
  const message = error instanceof CommanderError ? usageMessage(error) : messageOf(error)
  const isDebugging = process.env.LOG_LEVEL === 'debug'
  // What a server or a file says may stand in it.
  if (isDebugging && error instanceof Error && !(error instanceof CommanderError))
    return escapeControlCharsInLines(hideSecrets(String(error.stack)))
  const line = escapeControlChars(hideSecrets(message))
  return isExpected ? line : `${line} (unexpected: LOG_LEVEL=debug shows where)`
}

/** `error: unknown option '--x'` and a suggestion on a second line, as one line of ours. */
function usageMessage({ message }: CommanderError): string {
  return message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

try {
  await program.parseAsync()
} catch (error) {
  // Help and the version that were asked for are no failure.
  const isHelp = error instanceof CommanderError && /^commander\.(?:help|version)/.test(error.code)
  const failure = failureOf(error)
  if (!isHelp) context.output.fail(textOf(error, failure), failure)
  if (!(error instanceof CommanderError && error.exitCode === 0)) process.exitCode = failure.exitCode
}
