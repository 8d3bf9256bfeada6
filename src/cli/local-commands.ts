import type { Command } from 'commander'
import { readConfig } from '../server/config.js'
import { type CommandContext, wholeNumber } from './command-context.js'
import { DEFAULT_URL } from './default-url.js'
import { type MineOptions, runMine } from './mine.js'
import { DEFAULT_MAX_TRANSACTIONS, runPublish } from './publish.js'
import { MAX_TRANSACTION_BYTES } from './publish-files.js'
import { untilSignal } from './signals.js'

interface PublishArguments {
  stream: boolean
  chunkSize?: number
  maxTransactions: number
  owner?: string
  url: string
}

type MineArguments = Pick<
  MineOptions,
  'url' | 'owner' | 'workers' | 'wallet' | 'keyFile' | 'feeRate' | 'arc' | 'folder'
> & { coins?: string[] }

/** Adds `publish` and `mine`, which make transactions and submit them to a server. */
export function addLocalCommands(program: Command, context: CommandContext): void {
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
    .option(
      '--max-transactions <count>',
      'refuse to submit more transactions than this',
      wholeNumber(1, 1_000_000_000),
      DEFAULT_MAX_TRANSACTIONS,
    )
    .option('--owner <address>', 'who is to own it; unless set, nobody can spend it')
    .option('--url <url>', 'where the server listens', DEFAULT_URL)
    .action(async (path: string, options: PublishArguments) => {
      const interruption = untilSignal()
      const { output } = context
      await interruption.during(() => runPublish({ ...options, path, output, signal: interruption.signal }))
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
      const { deployment: expected, warnings } = readConfig(process.env)
      for (const warning of warnings) context.output.warn(warning)
      const arcApiKey = process.env.ARC_API_KEY
      const interruption = untilSignal()
      const { output } = context
      await interruption.during(() =>
        runMine({
          ...options,
          name,
          coins: options.coins ?? [],
          expected,
          ...(arcApiKey !== undefined && { arcApiKey }),
          output,
          signal: interruption.signal,
        }),
      )
    })
}
