import tab from '@bomb.sh/tab/commander'
import { Command, CommanderError } from 'commander'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { packageVersion } from '../server/config/package-info.js'
import { hidingSecrets } from '../server/config/redaction.js'
import { escapeControlChars, escapeControlCharsInLines } from '../server/telemetry/public-text.js'
import { addBlockingCommands } from './blocking-commands.js'
import { type CommandContext, EXIT_CODES } from './command.js'
import { addNameCommands } from './name-commands.js'
import { CommandOutput, type Failure, hasColors } from './output.js'
import { addPayingCommands } from './paying-commands.js'
import { loadSettingsFile } from './settings-file.js'
import { addStoreCommands } from './store-commands.js'

const unreadable = loadSettingsFile(process.argv[2])
const hideSecrets = hidingSecrets(process.env, process.argv.slice(2))

// A reader may close the pipe early, as `head` does. The command goes on: it may have paid for half of what it was asked to do.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    if (stream === process.stdout)
      process.stderr.write(`minetree: cannot write its output: ${error.message}\n`)
    process.exit(EXIT_CODES.failure)
  })
}

const outputWith = (json: boolean): CommandOutput =>
  new CommandOutput({ stdout: process.stdout, stderr: process.stderr, json, env: process.env, hideSecrets })

// A guess, for errors in the command line itself.
const context: CommandContext = { output: outputWith(process.argv.includes('--json')), hideSecrets }

const program = new Command('minetree')
  .description(
    'Names that are mined and content that lives on the chain. Settings come from the environment and from minetree.env: see docs/settings.md.',
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
addNameCommands(program, context)
addPayingCommands(program, context)
addBlockingCommands(program, context)
for (const command of program.commands) command.option('--json', 'print results as JSON', false)
// Adds `complete`, which needs all commands: loading it takes a moment that no other command needs.
if (process.argv[2] === 'complete') tab(program)
else
  program
    .command('complete')
    .argument('<shell>')
    .description('print a script that completes commands: zsh, bash, fish or powershell')

/** One line that says what went wrong; with LOG_LEVEL=debug, the stack. */
function textOf(error: unknown, { isExpected }: Failure): string {
  const message = error instanceof CommanderError ? usageMessage(error) : messageOf(error)
  const isDebugging = process.env.LOG_LEVEL === 'debug'
  // The stack may quote servers and files.
  if (isDebugging && error instanceof Error && !(error instanceof CommanderError))
    return escapeControlCharsInLines(hideSecrets(String(error.stack)))
  const line = escapeControlChars(hideSecrets(message))
  return isExpected ? line : `${line} (unexpected error: LOG_LEVEL=debug shows where)`
}

/** `error: unknown option '--x'` and a suggestion on a second line, as one line of ours. */
function usageMessage({ message }: CommanderError): string {
  return message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ')
}

// Not awaited here: the bundle of this file is a CommonJS module.
void run()

async function run(): Promise<void> {
  // Called when nothing is left that could end the command.
  const onStuck = (): void => {
    process.exitCode = EXIT_CODES.failure
  }
  process.once('beforeExit', onStuck)
  try {
    if (unreadable !== undefined) throw unreadable
    await program.parseAsync()
  } catch (error) {
    await fail(error)
  }
  process.off('beforeExit', onStuck)
}

async function fail(error: unknown): Promise<void> {
  // Asking for help or the version is not a failure.
  const isHelp = error instanceof CommanderError && /^commander\.(?:help|version)/.test(error.code)
  // Loaded on demand: it imports the errors of all rooms.
  const { failureOf } = await import('./exit-codes.js')
  const failure = failureOf(error)
  if (!isHelp) context.output.fail(textOf(error, failure), failure)
  if (!(error instanceof CommanderError && error.exitCode === 0)) process.exitCode = failure.exitCode
}
