import { type Command, InvalidArgumentError, Option } from 'commander'
import {
  BINDING_LAYOUTS,
  BINDING_PROTOCOLS,
  type BindingLayout,
  type BindingProtocol,
} from '../../backend/src/protocol/identity-binding.js'
import { type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { MiningBudget } from '../mining/budget.js'
import type { DirectoryFormat } from '../publish/folder.js'
import type { AdvertiseOptions } from './advertise.js'
import {
  type CommandContext,
  CommandError,
  defaultUrl,
  MAX_SATOSHIS,
  MAX_TRANSACTION_BYTES,
  readSettings,
  untilSignal,
  usageError,
  wholeNumber,
} from './command.js'
import type { MineOptions } from './mine.js'
import type { Deed, MoveOptions } from './move-name.js'
import type { PaymentOptions } from './payment.js'
import type { PublishOnNameOptions } from './publish-on-name.js'

// The commands that make transactions and submit them to a server. They load their modules when they run.

type PayerArguments = Pick<PaymentOptions, 'wallet' | 'keyFile' | 'feeRate' | 'arc' | 'yes'> & {
  coins?: string[]
}

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

type MoveArguments = Pick<MoveOptions, 'url' | 'genesis' | 'maxFee'> & PayerArguments

interface BindArguments extends MoveArguments {
  domain?: string
  displayName?: string
  avatar?: Outpoint | ''
  layout?: BindingLayout
  protocol?: BindingProtocol
  printLock: boolean
}

/** How many transactions are published by default: a stream of a gigabyte in chunks of the default size. */
const DEFAULT_MAX_TRANSACTIONS = 1024
/** The longest delay of a timer, in seconds. */
const MAX_SECONDS = 2_000_000
/** In satoshis: many times the usual fee of a move, and ten times that of a host's tokens. */
const MAX_FEES = { move: 1000, advertise: 2000 }

export function addPayingCommands(program: Command, context: CommandContext): void {
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
    .option('--name <name>', 'publish on this name, which you hold; also on the live network')
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
    .option('--no-patches', 'with --name: publish no patches; other gateways may not read them')
    .option('--genesis <outpoint>', 'the tree of the name; overrides GENESIS')
    .option('--max-fee <satoshis>', 'the highest fee', wholeNumber(1, MAX_SATOSHIS))
    .action(async (path: string | undefined, options: PublishArguments) => {
      const { name } = options
      if (name === undefined) {
        if (options.dryRun || options.to !== undefined) throw usageError('--dry-run and --to need --name')
        if (path === undefined) throw usageError('say what to publish: a file or a folder')
        const { profile } = readSettings(context)
        if (profile.name !== 'local')
          throw usageError(
            `PROFILE is ${profile.name}: without --name, you can publish only to a local network`,
          )
        await untilSignal(context, async (at) =>
          (await import('./publish.js')).runPublish({ ...options, path, ...at }),
        )
        return
      }
      if (options.stream || options.chunkSize !== undefined || options.owner !== undefined)
        throw usageError('--name takes no stream (--stream, --chunk-size) and no --owner')
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
      'the most mints to pay for; by default, the missing characters plus three',
      wholeNumber(1, 1000),
    )
    .option('--max-time <seconds>', 'how long it may take; an hour by default', wholeNumber(1, MAX_SECONDS))
    .action(async (name: string, options: MineArguments) => {
      const { maxFee, maxTotal, maxMints, maxTime, ...given } = options
      const config = readSettings(context)
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
          knownTrees: new KnownTrees(process.env),
          budget: { ...limits, ...(maxTime !== undefined && { maxTime: 1000 * maxTime }) },
        }),
      )
    })

  payerOptions(program.command('advertise'))
    .description('advertise this host, or revoke what it advertises: see docs/follow.md')
    .option('--revoke', 'revoke all advertisements of this host', false)
    .option('--again', 'pay again for advertisements that were revoked elsewhere', false)
    .option('--url <url>', 'the URL at which the command reaches this host', defaultUrl())
    .option('--max-fee <satoshis>', 'the highest fee', wholeNumber(1, MAX_SATOSHIS), MAX_FEES.advertise)
    .option('--tracker <urls...>', 'the trackers to tell; on the live network, those of the SDK by default')
    .action(async (options: AdvertiseArguments) => {
      const config = readSettings(context)
      const { runAdvertise } = await import('./advertise.js')
      await runPaying({ ...options, config }, context, runAdvertise)
    })

  moveCommand(program, 'bind', 'bind a name to your identity key: see docs/mine.md')
    .option('--domain <domain>', 'where you can be reached, for the profile; "" removes it')
    .option('--display-name <text>', 'the name to show, for the profile; "" removes it')
    .option('--avatar <outpoint>', 'the origin of an image, for the profile; "" removes it', avatar)
    .addOption(new Option('--layout <layout>', 'how the fields are laid out').choices(BINDING_LAYOUTS))
    .addOption(
      new Option('--protocol <protocol>', 'the protocol that the key is derived with').choices(
        BINDING_PROTOCOLS,
      ),
    )
    .option('--print-lock', 'print the lock, so that somebody else can transfer a name to you', false)
    .action(async (name: string, options: BindArguments) => {
      const { domain, displayName, avatar, layout, protocol, printLock } = options
      const { profileArguments } = await import('./move-name.js')
      const terms = {
        ...profileArguments({
          // Some releases of deployed wallets refuse upper case.
          ...(domain !== undefined && { domain: domain.trim().toLowerCase() }),
          ...(displayName !== undefined && { name: displayName }),
          ...(avatar !== undefined && { avatar }),
        }),
        ...(layout && { layout }),
        ...(protocol && { protocol }),
      }
      await run({ name, options, context }, { kind: 'bind', terms, printLock })
    })

  moveCommand(program, 'unbind', 'lock a name with your key, and unbind it from your identity').action(
    async (name: string, options: MoveArguments) => {
      await run({ name, options, context }, { kind: 'unbind' })
    },
  )

  moveCommand(program, 'transfer', 'transfer a name')
    .argument('[address]', 'the P2PKH address of the new holder; unbinds the name from your identity')
    .option('--lock <hex>', 'the lock of the new holder, from minetree bind --print-lock')
    .action(async (name: string, address: string | undefined, options: MoveArguments & { lock?: string }) => {
      const { lock } = options
      await run(
        { name, options, context },
        { kind: 'transfer', ...(address !== undefined && { address }), ...(lock !== undefined && { lock }) },
      )
    })

  program
    .command('payments')
    .description('list payments and their outcomes: see docs/cli.md')
    .option('--lose <txid>', 'give up a payment that will never be mined, and free its coins')
    .action(async ({ lose }: { lose?: string }) => {
      const { output } = context
      const { openJournal } = await import('./payment.js')
      const journal = openJournal(process.env, readSettings(context))
      try {
        if (lose !== undefined && !(await journal.lose(lose)))
          throw new CommandError(`${lose} is not in ${journal.path}`, { exit: 'notFound' })
        for (const { txid, kind, subject, place, payer, state, fee, isAdmitted } of journal.payments())
          output.result(
            { txid, kind, subject, place, payer, state, fee, isAdmitted },
            `${txid} ${state} ${kind} ${subject} ${fee}`,
          )
      } finally {
        journal.close()
      }
    })
}

function moveCommand(program: Command, command: string, description: string): Command {
  const made = program
    .command(command)
    .description(description)
    .argument('<name>', '1 to 255 characters of a-z 0-9 -')
    .option('--url <url>', 'a server that follows the tree', defaultUrl())
    .option('--genesis <outpoint>', 'the tree; overrides GENESIS')
  return payerOptions(made, 'that holds the name and pays').option(
    '--max-fee <satoshis>',
    'the highest fee',
    wholeNumber(1, MAX_SATOSHIS),
    MAX_FEES.move,
  )
}

function payerOptions(command: Command, whose = 'that pays'): Command {
  return command
    .option('--wallet <url>', `a wallet (BRC-100) ${whose}, such as http://127.0.0.1:3321`)
    .option('--key-file <file>', `a file with the key ${whose}, as WIF`)
    .option('--coins <paths...>', 'files or folders with coins of the key, in BEEF')
    .option('--fee-rate <satoshis>', 'the fee per 1,000 bytes, if the key pays', wholeNumber(1, 1_000_000))
    .option('--arc <url>', 'the ARC service if the key pays; by default, the one of the SDK')
    .option('--yes', 'pay without being asked', false)
}

async function runPaying<Given extends PayerArguments>(
  given: Given,
  context: CommandContext,
  work: (options: Omit<Given, 'coins'> & PaymentOptions) => Promise<void>,
): Promise<void> {
  const { ARC_API_KEY: arcApiKey } = process.env
  await untilSignal(context, async (at) => {
    const { terminalAsk } = await import('./payment.js')
    await work({
      ...given,
      ...{ ...at, env: process.env, coins: given.coins ?? [], ask: terminalAsk(at.signal) },
      ...(arcApiKey !== undefined && { arcApiKey }),
    })
  })
}

function avatar(text: string): Outpoint | '' {
  const outpoint = text === '' ? text : readOutpoint(text)
  if (outpoint !== undefined) return outpoint
  throw new InvalidArgumentError('It must be an outpoint: <txid>_<vout>.')
}

async function run(
  { name, options, context }: { name: string; options: MoveArguments; context: CommandContext },
  deed: Deed,
): Promise<void> {
  const { runMove } = await import('./move-name.js')
  await runPaying({ ...options, name }, context, (all) => runMove(all, deed))
}
