import type { Command } from 'commander'
import type { MiningBudget } from '../mining/budget.js'
import { readConfig } from '../server/config/config.js'
import { type CommandContext, wholeNumber } from './command-context.js'
import { terminalAsk } from './confirm.js'
import { DEFAULT_URL } from './default-url.js'
import { KnownTrees } from './known-trees.js'
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
  'url' | 'owner' | 'workers' | 'wallet' | 'keyFile' | 'feeRate' | 'arc' | 'folder' | 'yes'
> &
  Omit<Partial<MiningBudget>, 'maxTime'> & {
    coins?: string[]
    /** In seconds. */
    maxTime?: number
  }

/** More than anybody pays for a name. */
const MAX_SATOSHIS = 1_000_000_000
/** As long as a timer of the platform runs. */
const MAX_SECONDS = 2_000_000

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
    .option(
      '--owner <address>',
      'whose the name is to be, fixed before the search; unless set, that of whoever pays',
    )
    .option('--workers <count>', 'threads that search; unless set, one per core', wholeNumber(1, 1024))
    .option('--wallet <url>', 'a wallet (BRC-100) that pays, as http://127.0.0.1:3321')
    .option('--key-file <file>', 'a file with the key that pays, as WIF')
    .option('--coins <paths...>', 'files or folders with coins of the key, in BEEF')
    .option('--fee-rate <satoshis>', 'what the key pays for 1,000 bytes', wholeNumber(1, 1_000_000))
    .option('--arc <url>', 'the ARC service that takes what the key pays for; unless set, that of the SDK')
    .option('--folder <folder>', 'where paid mints are kept', './mints')
    .option(
      '--max-fee <satoshis>',
      'the most that one mint may cost; unless set, 5000',
      wholeNumber(1, MAX_SATOSHIS),
    )
    .option('--max-total <satoshis>', 'the most that all of them may cost', wholeNumber(1, MAX_SATOSHIS))
    .option(
      '--max-mints <count>',
      'the most mints that are paid for; unless set, the missing characters and 3',
      wholeNumber(1, 1000),
    )
    .option('--max-time <seconds>', 'how long it may take; unless set, an hour', wholeNumber(1, MAX_SECONDS))
    .option('--yes', 'pay without being asked', false)
    .action(async (name: string, options: MineArguments) => {
      const { output } = context
      const { maxFee, maxTotal, maxMints, maxTime, ...given } = options
      const config = readConfig(process.env)
      for (const warning of config.warnings) output.warn(warning)
      const arcApiKey = process.env.ARC_API_KEY
      const isNetworkSet = process.env.NETWORK !== undefined || config.profile.name === 'mainnet'
      const interruption = untilSignal()
      const { signal } = interruption
      await interruption.during(() =>
        runMine({
          ...given,
          ...{ name, config, output, signal },
          network: isNetworkSet ? config.network : undefined,
          knownTrees: KnownTrees.open(process.env),
          coins: options.coins ?? [],
          budget: {
            ...(maxFee !== undefined && { maxFee }),
            ...(maxTotal !== undefined && { maxTotal }),
            ...(maxMints !== undefined && { maxMints }),
            ...(maxTime !== undefined && { maxTime: 1000 * maxTime }),
          },
          ask: terminalAsk(signal),
          ...(arcApiKey !== undefined && { arcApiKey }),
        }),
      )
    })
}
