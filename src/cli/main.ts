#!/usr/bin/env node
import { Command, InvalidArgumentError } from 'commander'
import { pino } from 'pino'
import { PublishError } from '../publish/publish-error.js'
import { type Config, ConfigError, readConfig } from '../server/config.js'
import { openNode, StartError } from '../server/node.js'
import { runImport } from './import.js'
import { ImportError } from './import-files.js'
import { runPublish } from './publish.js'
import { MAX_TRANSACTION_BYTES } from './publish-files.js'
import { PublishingError } from './publishing-error.js'
import { serve } from './serve.js'

/** What whoever runs the command can do something about. */
const TOLD_IN_A_LINE = [ConfigError, StartError, ImportError, PublishError, PublishingError]

const program = new Command('minetree').description(
  'Names that are mined and content that lives on the chain. Settings come from the environment: see the README.',
)

program
  .command('serve')
  .description('start the service')
  .action(async () => {
    const config = readConfig(process.env)
    await serve({ config, logger: pino({ level: config.logLevel }) })
  })

program
  .command('import')
  .description('admit transactions from files: BEEF, or raw transactions as hex, in whatever order')
  .argument('<paths...>', 'files, or folders to search')
  .option('--trust', 'take raw transactions without a proof on your word; they are kept as unproven', false)
  .action(async (paths: string[], { trust }: { trust: boolean }) => {
    const config = readConfig(process.env)
    // What is not admitted is told at the end, with its cause; the log is for what goes wrong.
    const logger = pino({ level: quieter(config.logLevel) }, pino.destination(2))
    const node = await openNode({ config, logger })
    try {
      await runImport({ node, paths, trust, out: process.stdout, progress: process.stderr })
    } finally {
      await node.close()
    }
  })

program
  .command('publish')
  .description('publish to a local network, which takes transactions of made-up money: see docs/publish.md')
  .argument('<path>', 'a file, or a folder to publish as a directory')
  .option('--stream', 'cut a file into chunks of 1 MiB, each in a transaction of its own', false)
  .option('--chunk-size <bytes>', 'cut it into chunks of so many bytes', chunkSize)
  .option('--owner <address>', 'who is to own it; unless set, nobody can spend it')
  .option('--url <url>', 'where the server listens', 'http://127.0.0.1:8080')
  .action(async (path: string, options: PublishArguments) => {
    await runPublish({ ...options, path, out: process.stdout, notes: process.stderr })
  })

interface PublishArguments {
  stream: boolean
  chunkSize?: number
  owner?: string
  url: string
}

function chunkSize(text: string): number {
  const size = Number(text)
  if (/^\d{1,10}$/.test(text) && size >= 1 && size <= MAX_TRANSACTION_BYTES) return size
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_TRANSACTION_BYTES}.`)
}

function quieter(level: Config['logLevel']): Config['logLevel'] {
  return level === 'info' ? 'warn' : level
}

try {
  await program.parseAsync()
} catch (error) {
  const known = TOLD_IN_A_LINE.some((kind) => error instanceof kind)
  const text = error instanceof Error ? (known ? error.message : error.stack) : String(error)
  process.stderr.write(`minetree: ${text}\n`)
  process.exitCode = 1
}
