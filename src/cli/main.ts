#!/usr/bin/env node
import { Command, InvalidArgumentError } from 'commander'
import { type Logger, pino } from 'pino'
import { MintError } from '../../backend/src/protocol/mint.js'
import { HeadersError } from '../client/proof-error.js'
import { ResolutionError } from '../client/resolution-error.js'
import { ChainSourceError } from '../crawl/chain-source.js'
import { CrawlError } from '../crawl/crawl-error.js'
import { CovenantError } from '../mining/covenant.js'
import { MiningError } from '../mining/mining-error.js'
import { SearchError } from '../mining/search/search-error.js'
import { PublishError } from '../publish/publish-error.js'
import { type Config, ConfigError, readConfig } from '../server/config.js'
import { harmless, harmlessLines } from '../server/harmless-text.js'
import { createLogger } from '../server/logger.js'
import { ChainTrackerError } from '../server/overlay-errors.js'
import { hidingSecrets } from '../server/secrets.js'
import { StartError } from '../server/start-error.js'
import { addBlockingCommands } from './blocking-commands.js'
import { CommandError } from './command-error.js'
import type { CrawlCommand } from './crawl.js'
import { DEFAULT_URL } from './default-url.js'
import { ImportError } from './import-files.js'
import { type MineOptions, runMine } from './mine.js'
import { addNameCommands } from './name-commands.js'
import { runPublish } from './publish.js'
import { MAX_TRANSACTION_BYTES } from './publish-files.js'

/** What whoever runs the command can do something about. */
const TOLD_IN_A_LINE = [
  ChainSourceError,
  ChainTrackerError,
  CommandError,
  ConfigError,
  CovenantError,
  CrawlError,
  HeadersError,
  ImportError,
  MintError,
  MiningError,
  PublishError,
  ResolutionError,
  SearchError,
  StartError,
]

const hideSecrets = hidingSecrets(process.env)

/** The log, on one of the standard streams, each line out before the next thing happens. */
function loggerOn(fd: 1 | 2, level: Config['logLevel']): Logger {
  const stream = pino.destination({ fd, sync: true })
  return createLogger({ level, hideSecrets, write: (line) => stream.write(line) })
}

// What opens a store or serves is loaded by the commands that do: the others start sooner.
const program = new Command('minetree').description(
  'Names that are mined and content that lives on the chain. Settings come from the environment: see the README.',
)

program
  .command('serve')
  .description('start the service')
  .action(async () => {
    const config = readConfig(process.env)
    const { serve } = await import('./serve.js')
    await serve({ config, logger: loggerOn(1, config.logLevel) })
  })

program
  .command('import')
  .description('admit transactions from files: BEEF, or raw transactions as hex, in whatever order')
  .argument('<paths...>', 'files, or folders to search')
  .option('--trust', 'take raw transactions without a proof on your word; they are kept as unproven', false)
  .action(async (paths: string[], { trust }: { trust: boolean }) => {
    const config = readConfig(process.env)
    // What is not admitted is told at the end, with its cause; the log is for what goes wrong.
    const logger = loggerOn(2, quieter(config.logLevel))
    const { openNode } = await import('../server/node.js')
    const { runImport } = await import('./import.js')
    const node = await openNode({ config, logger })
    try {
      // What is answered decides what is taken.
      if (node.upkeep.status.state === 'rebuilding') await node.upkeep.run()
      await runImport({ node, paths, trust, out: process.stdout, progress: process.stderr })
    } finally {
      await node.close()
    }
  })

program
  .command('crawl')
  .description('follow the tree from its genesis through an index of the chain: see docs/crawl.md')
  .option('--source <url>', 'what speaks as JungleBus does', 'https://junglebus.gorillapool.io')
  .option('--parallel <count>', 'requests at once', wholeNumber(1, 256), 3)
  .option('--names-only', 'do not follow where names went after they were mined', false)
  .option('--most <count>', 'stop after so many transactions', wholeNumber(1, 1_000_000_000), 1_000_000)
  .action(async (options: Pick<CrawlCommand, 'source' | 'parallel' | 'namesOnly' | 'most'>) => {
    const config = readConfig(process.env)
    const stop = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
    const logger = loggerOn(2, quieter(config.logLevel))
    const { runCrawl } = await import('./crawl.js')
    const streams = { out: process.stdout, progress: process.stderr }
    await runCrawl({ ...options, ...streams, config, logger, signal: stop.signal })
  })

program
  .command('reindex')
  .description(
    'make all that is answered anew, of the transactions and what was admitted: see docs/nothing-lost.md',
  )
  .action(async () => {
    const config = readConfig(process.env)
    const logger = pino({ level: quieter(config.logLevel) }, pino.destination(2))
    const { runReindex } = await import('./reindex.js')
    await runReindex({ config, logger, out: process.stdout, progress: process.stderr })
  })

program
  .command('publish')
  .description('publish to a local network, which takes transactions of made-up money: see docs/publish.md')
  .argument('<path>', 'a file, or a folder to publish as a directory')
  .option('--stream', 'cut a file into chunks of 1 MiB, each in a transaction of its own', false)
  .option(
    '--chunk-size <bytes>',
    'cut it into chunks of so many bytes',
    wholeNumber(1, MAX_TRANSACTION_BYTES),
  )
  .option('--owner <address>', 'who is to own it; unless set, nobody can spend it')
  .option('--url <url>', 'where the server listens', DEFAULT_URL)
  .action(async (path: string, options: PublishArguments) => {
    await runPublish({ ...options, path, out: process.stdout, notes: process.stderr })
  })

program
  .command('mine')
  .description('mine a name, a character at a time: see docs/mining.md')
  .argument('<name>', 'of a-z 0-9 -')
  .option('--url <url>', 'a server that follows the tree', DEFAULT_URL)
  .option('--owner <address>', 'whose the name is to be; unless set, that of whoever pays')
  .option('--workers <count>', 'threads that search; unless set, one per core', wholeNumber(1, 1024))
  .option('--wallet <url>', 'a wallet (BRC-100) that pays, as http://127.0.0.1:3321')
  .option('--key-file <file>', 'a file with the key that pays, as WIF')
  .option('--coins <paths...>', 'files or folders with coins of the key, in BEEF')
  .option('--fee-rate <satoshis>', 'what the key pays for 1,000 bytes', wholeNumber(1, 1_000_000))
  .option('--arc <url>', 'the ARC service that takes what the key pays for; unless set, that of the SDK')
  .option('--folder <folder>', 'where paid mints are kept', './mints')
  .action(async (name: string, options: MineArguments) => {
    const { deployment: expected } = readConfig(process.env)
    const arcApiKey = process.env.ARC_API_KEY
    const stop = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
    await runMine({
      ...options,
      name,
      coins: options.coins ?? [],
      expected,
      ...(arcApiKey !== undefined && { arcApiKey }),
      out: process.stdout,
      progress: process.stderr,
      signal: stop.signal,
    }).catch((error: unknown) => {
      throw stop.signal.aborted ? new CommandError('stopped: the same command goes on from here') : error
    })
  })

type MineArguments = Pick<
  MineOptions,
  'url' | 'owner' | 'workers' | 'wallet' | 'keyFile' | 'feeRate' | 'arc' | 'folder'
> & { coins?: string[] }

addNameCommands(program)
addBlockingCommands(program)

interface PublishArguments {
  stream: boolean
  chunkSize?: number
  owner?: string
  url: string
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d{1,10}$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

function quieter(level: Config['logLevel']): Config['logLevel'] {
  return level === 'info' ? 'warn' : level
}

try {
  await program.parseAsync()
} catch (error) {
  const known = TOLD_IN_A_LINE.some((kind) => error instanceof kind)
  const text = error instanceof Error ? String(known ? error.message : error.stack) : String(error)
  // What a server or a file says may stand in it.
  process.stderr.write(`minetree: ${(known ? harmless : harmlessLines)(hideSecrets(text))}\n`)
  process.exitCode = 1
}
