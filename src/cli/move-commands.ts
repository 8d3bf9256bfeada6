import { type Command, InvalidArgumentError, Option } from 'commander'
import {
  BINDING_LAYOUTS,
  BINDING_PROTOCOLS,
  type BindingLayout,
  type BindingProtocol,
} from '../../backend/src/protocol/identity-binding.js'
import { type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import {
  type CommandContext,
  CommandError,
  defaultUrl,
  MAX_SATOSHIS,
  untilSignal,
  wholeNumber,
} from './command.js'
import type { Deed, MoveOptions } from './move-name.js'
import type { PaymentOptions } from './payment.js'

type MoveArguments = Pick<MoveOptions, 'url' | 'genesis' | 'maxFee'> & PayerArguments

interface BindArguments extends MoveArguments {
  domain?: string
  displayName?: string
  avatar?: Outpoint | ''
  layout?: BindingLayout
  protocol?: BindingProtocol
  printLock: boolean
}

/** In satoshis: many times what the transaction costs at the usual rate. */
const DEFAULT_MAX_FEE = 1000

/** Adds `bind`, `unbind` and `transfer`, which move a name that somebody holds. They load their modules when they run. */
export function addMoveCommands(program: Command, context: CommandContext): void {
  moveCommand(program, 'bind', 'bind a name to your identity key: see docs/mine.md')
    .option('--domain <domain>', 'where you can be reached, for the profile; "" removes it')
    .option('--display-name <text>', 'the name to show, for the profile; "" removes it')
    .option('--avatar <outpoint>', 'the origin of an image, for the profile; "" removes it', avatar)
    .addOption(new Option('--layout <layout>', 'how the fields are laid out').choices(BINDING_LAYOUTS))
    .addOption(
      new Option('--protocol <protocol>', 'the protocol that the key is derived by').choices(
        BINDING_PROTOCOLS,
      ),
    )
    .option('--print-lock', 'print the lock, for a name that somebody else is to transfer to you', false)
    .action(async (name: string, options: BindArguments) => {
      const { domain, displayName, avatar, layout, protocol, printLock } = options
      const { profileArguments } = await import('./move-name.js')
      const terms = {
        ...profileArguments({
          // Some releases of deployed wallets refuse any other case.
          ...(domain !== undefined && { domain: domain.trim().toLowerCase() }),
          ...(displayName !== undefined && { name: displayName }),
          ...(avatar !== undefined && { avatar }),
        }),
        ...(layout && { layout }),
        ...(protocol && { protocol }),
      }
      await run({ name, options, context }, { kind: 'bind', terms, printLock })
    })

  moveCommand(program, 'unbind', 'lock a name with your key again, bound to no identity').action(
    async (name: string, options: MoveArguments) => {
      await run({ name, options, context }, { kind: 'unbind' })
    },
  )

  moveCommand(program, 'transfer', 'transfer a name')
    .argument('[address]', 'whom to, as a P2PKH address; leaves the name bound to no identity')
    .option('--lock <hex>', 'the lock that the new holder has made: minetree bind --print-lock')
    .action(async (name: string, address: string | undefined, options: MoveArguments & { lock?: string }) => {
      const { lock } = options
      await run(
        { name, options, context },
        { kind: 'transfer', ...(address !== undefined && { address }), ...(lock !== undefined && { lock }) },
      )
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
    DEFAULT_MAX_FEE,
  )
}

export type PayerArguments = Pick<PaymentOptions, 'wallet' | 'keyFile' | 'feeRate' | 'arc' | 'yes'> & {
  coins?: string[]
}

export function payerOptions(command: Command, whose = 'that pays'): Command {
  return command
    .option('--wallet <url>', `a wallet (BRC-100) ${whose}, such as http://127.0.0.1:3321`)
    .option('--key-file <file>', `a file with the key ${whose}, as WIF`)
    .option('--coins <paths...>', 'files or folders with coins of the key, in BEEF')
    .option('--fee-rate <satoshis>', 'the fee per 1,000 bytes, if the key pays', wholeNumber(1, 1_000_000))
    .option('--arc <url>', 'the ARC service if the key pays; by default, the one of the SDK')
    .option('--yes', 'pay without being asked', false)
}

export async function runPaying<Given extends PayerArguments>(
  given: Given,
  { output }: CommandContext,
  work: (options: Omit<Given, 'coins'> & PaymentOptions) => Promise<void>,
): Promise<void> {
  const interruption = untilSignal()
  const { signal } = interruption
  const { terminalAsk } = await import('./payment.js')
  const arcApiKey = process.env.ARC_API_KEY
  await interruption.during(() =>
    work({
      ...given,
      ...{ output, signal, env: process.env, coins: given.coins ?? [], ask: terminalAsk(signal) },
      ...(arcApiKey !== undefined && { arcApiKey }),
    }),
  )
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

/** Adds `payments`, which shows what the commands that pay have paid for. */
export function addPaymentsCommand(program: Command, context: CommandContext): void {
  program
    .command('payments')
    .description('show what was paid for, and what became of it: see docs/cli.md')
    .option('--lose <txid>', 'give up a payment that nobody will ever mine: its coins are free again')
    .action(async ({ lose }: { lose?: string }) => {
      const { output } = context
      const [{ openJournal }, { readConfig }] = await Promise.all([
        import('./payment.js'),
        import('../server/config/config.js'),
      ])
      const journal = openJournal(process.env, readConfig(process.env))
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
