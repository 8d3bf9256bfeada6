import { type Command, Option } from 'commander'
import type { MiningBudget } from '../mining/budget.js'
import type { DirectoryFormat } from '../publish/folder.js'
import { type Config, readConfig } from '../server/config/config.js'
import type { AdvertiseOptions } from './advertise.js'
import {
  type CommandContext,
  CommandError,
  defaultUrl,
  MAX_SATOSHIS,
  MAX_TRANSACTION_BYTES,
  untilSignal,
  wholeNumber,
} from './command.js'
import type { MineOptions } from './mine.js'
import { type PayerArguments, payerOptions, runPaying } from './move-commands.js'
import type { PublishOnNameOptions } from './publish-on-name.js'

type PublishArguments = Pick<
  PublishOnNameOptions,
  'dryRun' | 'format' | 'genesis' | 'maxFee' | 'patches' | 'to'
> &
  PayerArguments & {
    name?: string
    stream: boolean
    chunkSize?: number
    maxTransactions: number
    owner?: string
    url: string
  }

type MineArguments = Pick<MineOptions, 'url' | 'owner' | 'workers'> &
  PayerArguments &
  Omit<Partial<MiningBudget>, 'maxTime'> & {
    /** In seconds. */
    maxTime?: number
  }

type AdvertiseArguments = Pick<AdvertiseOptions, 'again' | 'maxFee' | 'revoke' | 'tracker' | 'url'> &
  PayerArguments

/** How many transactions are published by default: a stream of a gigabyte in chunks of the default size. */
const DEFAULT_MAX_TRANSACTIONS = 1024
/** The longest delay of a timer. */
const MAX_SECONDS = 2_000_000

/** In satoshis: ten times what the tokens of a host cost at the usual rate. */
const DEFAULT_MAX_FEE = 2000

/**
 * Adds `publish`, `mine` and `advertise`, which make transactions and submit them to a server. They load their modules when
 * they run.
 */
export function addMineAndPublishCommands(program: Command, context: CommandContext): void {
  payerOptions(program.command('publish'), 'that holds the name and pays')
    .description(
      'publish on a name, or to a local network, which accepts transactions with fake funding: see docs/publish.md',
    )
    .argument('[path]', 'a file, or a folder to publish as a directory')
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
    .option('--url <url>', 'where the server listens', defaultUrl())
    .option('--name <name>', 'a name that you hold, which shows it from then on; also on the live network')
    .option('--dry-run', 'with --name: only show what is new, kept and removed, and what it costs', false)
    .option(
      '--to <state>',
      'with --name: put an earlier state back, by its number',
      wholeNumber(1, 1_000_000_000),
    )
    .addOption(
      new Option('--format <format>', 'how folders are written: JSON, or binary as ordfs/dir')
        .choices(['json', 'dir'] satisfies DirectoryFormat[])
        .default('json'),
    )
    .option('--no-patches', 'with --name: publish nothing as a patch, which other gateways may not read')
    .option('--genesis <outpoint>', 'the tree of the name; overrides GENESIS')
    .option('--max-fee <satoshis>', 'the highest fee', wholeNumber(1, MAX_SATOSHIS))
    .action(async (path: string | undefined, options: PublishArguments) => {
      const { name } = options
      if (name === undefined) {
        if (options.dryRun || options.to !== undefined)
          throw new CommandError('--dry-run and --to go with --name', { exit: 'usage' })
        if (path === undefined)
          throw new CommandError('say what to publish: a file or a folder', { exit: 'usage' })
        const interruption = untilSignal()
        const { signal } = interruption
        const { runPublish } = await import('./publish.js')
        await interruption.during(() => runPublish({ ...options, path, output: context.output, signal }))
        return
      }
      if (options.stream || options.chunkSize !== undefined || options.owner !== undefined)
        throw new CommandError('--name takes no stream (--stream, --chunk-size) and no --owner', {
          exit: 'usage',
        })
      const { runPublishOnName } = await import('./publish-on-name.js')
      await runPaying({ ...options, name, ...(path !== undefined && { path }) }, context, runPublishOnName)
    })

  payerOptions(program.command('mine'))
    .description('mine a name, a character at a time: see docs/mine.md')
    .argument('<name>', 'of a-z 0-9 -')
    .option('--url <url>', 'a server that follows the tree', defaultUrl())
    .option('--owner <address>', 'the owner of the name, fixed before the search; by default, the payer')
    .option('--workers <count>', 'threads that search; by default, one per core', wholeNumber(1, 1024))
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
    .action(async (name: string, options: MineArguments) => {
      const { maxFee, maxTotal, maxMints, maxTime, ...given } = options
      const config = configWithWarnings(context)
      const isNetworkSet = process.env.NETWORK !== undefined || config.profile.name === 'mainnet'
      const [{ runMine }, { KnownTrees }] = await Promise.all([
        import('./mine.js'),
        import('./known-trees.js'),
      ])
      const limits = { maxFee, maxTotal, maxMints }
      await runPaying({ ...given, name, config }, context, (all) =>
        runMine({
          ...all,
          network: isNetworkSet ? config.network : undefined,
          knownTrees: KnownTrees.open(process.env),
          budget: { ...limits, ...(maxTime !== undefined && { maxTime: 1000 * maxTime }) },
        }),
      )
    })

  payerOptions(program.command('advertise'))
    .description('advertise this host, or revoke what it advertises: see docs/follow.md')
    .option('--revoke', 'revoke all advertisements of this host', false)
    .option('--again', 'pay again for what the server does not show: it was revoked elsewhere', false)
    .option('--url <url>', 'where this host answers the command', defaultUrl())
    .option('--max-fee <satoshis>', 'the highest fee', wholeNumber(1, MAX_SATOSHIS), DEFAULT_MAX_FEE)
    .option('--tracker <urls...>', 'the trackers to tell; on the live network, those of the SDK by default')
    .action(async (options: AdvertiseArguments) => {
      const config = configWithWarnings(context)
      const { runAdvertise } = await import('./advertise.js')
      await runPaying({ ...options, config }, context, runAdvertise)
    })
}

function configWithWarnings({ output }: CommandContext): Config {
  const config = readConfig(process.env)
  for (const warning of config.warnings) output.warn(warning)
  return config
}
