import type { Command } from 'commander'
import type { MiningBudget } from '../mining/budget.js'
import { readConfig } from '../server/config/config.js'
import type { AdvertiseOptions } from './advertise.js'
import {
  type CommandContext,
  CommandError,
  DEFAULT_URL,
  MAX_TRANSACTION_BYTES,
  untilSignal,
  wholeNumber,
} from './command.js'
import type { MineOptions } from './mine.js'
import type { PublishOnNameOptions } from './publish-on-name.js'

type PublishArguments = Pick<
  PublishOnNameOptions,
  'genesis' | 'wallet' | 'keyFile' | 'feeRate' | 'maxFee' | 'arc' | 'yes'
> & {
  name?: string
  coins?: string[]
  stream: boolean
  chunkSize?: number
  maxTransactions: number
  owner?: string
  url: string
}

type MineArguments = Pick<
  MineOptions,
  'url' | 'owner' | 'workers' | 'wallet' | 'keyFile' | 'feeRate' | 'arc' | 'yes'
> &
  Omit<Partial<MiningBudget>, 'maxTime'> & {
    coins?: string[]
    /** In seconds. */
    maxTime?: number
  }

type AdvertiseArguments = Omit<
  AdvertiseOptions,
  'coins' | 'arcApiKey' | 'ask' | 'config' | 'env' | 'output' | 'signal'
> & { coins?: string[] }

/** How many transactions are published by default: a stream of a gigabyte in chunks of the default size. */
const DEFAULT_MAX_TRANSACTIONS = 1024
/** More than anyone pays for a name. */
const MAX_SATOSHIS = 1_000_000_000
/** The longest delay of a timer. */
const MAX_SECONDS = 2_000_000

/** In satoshis: ten times what the tokens of a host cost at the usual rate. */
const DEFAULT_MAX_FEE = 2000

/**
 * Adds `publish`, `mine` and `advertise`, which make transactions and submit them to a server. They load their modules when
 * they run.
 */
export function addMineAndPublishCommands(program: Command, context: CommandContext): void {
  program
    .command('publish')
    .description(
      'publish on a name, or to a local network, which accepts transactions with fake funding: see docs/publish.md',
    )
    .argument('<path>', 'a file, or a folder to publish as a directory')
    .option('--stream', 'split a file into chunks of 1 MiB, each in its own transaction', false)
    .option(
      '--chunk-size <bytes>',
      'split it into chunks of this many bytes',
      wholeNumber(1, MAX_TRANSACTION_BYTES),
    )
    .option(
      '--max-transactions <count>',
      'refuse to submit more transactions than this',
      wholeNumber(1, 1_000_000_000),
      DEFAULT_MAX_TRANSACTIONS,
    )
    .option('--owner <address>', 'the owner; by default, nobody can spend it')
    .option('--url <url>', 'where the server listens', DEFAULT_URL)
    .option('--name <name>', 'a name that you hold, which shows it from then on; also on the live network')
    .option('--genesis <outpoint>', 'the tree of the name; overrides GENESIS')
    .option('--wallet <url>', 'a wallet (BRC-100) that holds the name and pays')
    .option('--key-file <file>', 'a file with the key that holds the name and pays, as WIF')
    .option('--coins <paths...>', 'files or folders with coins of the key, in BEEF')
    .option('--fee-rate <satoshis>', 'the fee per 1,000 bytes, if the key pays', wholeNumber(1, 1_000_000))
    .option('--max-fee <satoshis>', 'the highest fee', wholeNumber(1, MAX_SATOSHIS))
    .option('--arc <url>', 'the ARC service if the key pays; by default, the one of the SDK')
    .option('--yes', 'pay without being asked', false)
    .action(async (path: string, options: PublishArguments) => {
      const interruption = untilSignal()
      const { output } = context
      const { name } = options
      if (name !== undefined) {
        if (options.stream || options.chunkSize !== undefined || options.owner !== undefined)
          throw new CommandError('--name goes with no stream and no --owner', { exit: 'usage' })
        const { signal } = interruption
        const [{ runPublishOnName }, { terminalAsk }] = await Promise.all([
          import('./publish-on-name.js'),
          import('./payment.js'),
        ])
        const arcApiKey = process.env.ARC_API_KEY
        await interruption.during(() =>
          runPublishOnName({
            ...options,
            ...{ name, path, output, signal, env: process.env, coins: options.coins ?? [] },
            ask: terminalAsk(signal),
            ...(arcApiKey !== undefined && { arcApiKey }),
          }),
        )
        return
      }
      const { runPublish } = await import('./publish.js')
      await interruption.during(() => runPublish({ ...options, path, output, signal: interruption.signal }))
    })

  program
    .command('mine')
    .description('mine a name, a character at a time: see docs/mining.md')
    .argument('<name>', 'of a-z 0-9 -')
    .option('--url <url>', 'a server that follows the tree', DEFAULT_URL)
    .option('--owner <address>', 'the owner of the name, fixed before the search; by default, the payer')
    .option('--workers <count>', 'threads that search; by default, one per core', wholeNumber(1, 1024))
    .option('--wallet <url>', 'a wallet (BRC-100) that pays, such as http://127.0.0.1:3321')
    .option('--key-file <file>', 'a file with the key that pays, as WIF')
    .option('--coins <paths...>', 'files or folders with coins of the key, in BEEF')
    .option('--fee-rate <satoshis>', 'the fee per 1,000 bytes, if the key pays', wholeNumber(1, 1_000_000))
    .option('--arc <url>', 'the ARC service for mints that the key pays for; by default, the one of the SDK')
    .option(
      '--max-fee <satoshis>',
      'the highest fee of one mint; 5000 by default',
      wholeNumber(1, MAX_SATOSHIS),
    )
    .option('--max-total <satoshis>', 'the highest fee of all mints together', wholeNumber(1, MAX_SATOSHIS))
    .option(
      '--max-mints <count>',
      'the most mints to pay for; by default, three more than characters are missing',
      wholeNumber(1, 1000),
    )
    .option('--max-time <seconds>', 'how long it may take; an hour by default', wholeNumber(1, MAX_SECONDS))
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
      const [{ runMine }, { terminalAsk }, { KnownTrees }] = await Promise.all([
        import('./mine.js'),
        import('./payment.js'),
        import('./known-trees.js'),
      ])
      await interruption.during(() =>
        runMine({
          ...given,
          ...{ name, config, output, signal, env: process.env },
          network: isNetworkSet ? config.network : undefined,
          knownTrees: KnownTrees.open(process.env),
          coins: options.coins ?? [],
          budget: {
            maxFee,
            maxTotal,
            maxMints,
            ...(maxTime !== undefined && { maxTime: 1000 * maxTime }),
          },
          ask: terminalAsk(signal),
          arcApiKey,
        }),
      )
    })

  program
    .command('advertise')
    .description('advertise this host, or revoke what it advertises: see docs/discovery.md')
    .option('--revoke', 'revoke all advertisements of this host', false)
    .option('--again', 'pay again for what the server does not show: it was revoked elsewhere', false)
    .option('--url <url>', 'where this host answers the command', DEFAULT_URL)
    .option('--wallet <url>', 'a wallet (BRC-100) that pays, such as http://127.0.0.1:3321')
    .option('--key-file <file>', 'a file with the key that pays, as WIF')
    .option('--coins <paths...>', 'files or folders with coins of the key, in BEEF')
    .option('--fee-rate <satoshis>', 'the fee per 1,000 bytes, if the key pays', wholeNumber(1, 1_000_000))
    .option('--max-fee <satoshis>', 'the highest fee', wholeNumber(1, MAX_SATOSHIS), DEFAULT_MAX_FEE)
    .option('--arc <url>', 'the ARC service if the key pays; by default, the one of the SDK')
    .option('--tracker <urls...>', 'the trackers to tell; on the live network, those of the SDK by default')
    .option('--yes', 'pay without being asked', false)
    .action(async (options: AdvertiseArguments) => {
      const { output } = context
      const config = readConfig(process.env)
      for (const warning of config.warnings) output.warn(warning)
      const arcApiKey = process.env.ARC_API_KEY
      const interruption = untilSignal()
      const { signal } = interruption
      const [{ runAdvertise }, { terminalAsk }] = await Promise.all([
        import('./advertise.js'),
        import('./payment.js'),
      ])
      await interruption.during(() =>
        runAdvertise({
          ...options,
          ...{ config, output, signal, env: process.env },
          coins: options.coins ?? [],
          ask: terminalAsk(signal),
          ...(arcApiKey !== undefined && { arcApiKey }),
        }),
      )
    })
}
