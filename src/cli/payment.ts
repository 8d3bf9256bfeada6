import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Transaction } from '@bsv/sdk'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { askedOnce, type Holder } from '../identity/move-name.js'
import type { Draft, Paid } from '../payments/draft.js'
import { FAKE_PAYER } from '../payments/fake.js'
import { Journal, type Purpose } from '../payments/journal.js'
import { DEFAULT_FEE_RATE } from '../payments/key.js'
import { type Destination, type Followed, Payments } from '../payments/payments.js'
import type { Config } from '../server/config/config.js'
import { CommandError, defaultUrl, usageError } from './command.js'
import { findTransactions } from './import-files.js'
import type { CommandOutput } from './output.js'
import { arcFor, readKey, walletAt } from './pay-services.js'
import { userFolder } from './user-files.js'

// Shared by the commands that pay.

export interface PaymentOptions {
  /** The URL of a wallet (BRC-100) with a JSON API. */
  wallet?: string
  /** A file with a key as WIF. */
  keyFile?: string
  /** Files with coins of the key. */
  coins: string[]
  /** Satoshis per 1,000 bytes. */
  feeRate?: number
  arc?: string
  arcApiKey?: string
  /** Pays without asking. */
  yes: boolean
  ask: Ask | undefined
  /** The environment, which determines where the journal of payments is. */
  env: Record<string, string | undefined>
  output: CommandOutput
  signal: AbortSignal
}

/** The journal of payments of a user, for all commands. @throws GeneralError `JOURNAL` */
export function openJournal(
  env: PaymentOptions['env'],
  { profile, network }: Pick<Config, 'profile' | 'network'>,
): Journal {
  const path = join(userFolder(env, 'XDG_DATA_HOME'), 'payments.db')
  return new Journal(path, profile.name === 'local' ? 'local' : network)
}

/**
 * The wallet or the key in the options, which holds names and pays.
 *
 * @throws CommandError (`usage`) for both, or a key that cannot be read; the reason of the signal.
 */
export async function holderOf(
  options: Pick<PaymentOptions, 'wallet' | 'keyFile' | 'signal'>,
): Promise<Holder> {
  const { wallet, keyFile, signal } = options
  if (wallet !== undefined && keyFile !== undefined)
    throw usageError('use either --wallet or --key-file, not both')
  if (wallet !== undefined) return { wallet: askedOnce(walletAt(wallet, signal)) }
  return keyFile === undefined ? {} : { key: await readKey(keyFile, signal) }
}

/**
 * Opens the payments of a wallet or a key.
 *
 * @returns Undefined if nobody pays, which a local network allows.
 * @throws CommandError (`usage`) if nobody pays on another network, and for files that cannot be read; GeneralError `JOURNAL`.
 */
export async function openPayments(
  { wallet, key }: Holder,
  options: PaymentOptions & { config: Config },
): Promise<Payments | undefined> {
  const { config, env, feeRate } = options
  if (wallet === undefined && key === undefined) {
    if (config.profile.name === 'local') return undefined
    throw usageError('choose who pays: use --wallet, or --key-file with --coins')
  }
  const coins = await readTransactions(options.coins)
  const journal = openJournal(env, config)
  if (wallet !== undefined) return new Payments(journal, { wallet })
  return new Payments(journal, { key: key as NonNullable<typeof key>, coins, feeRate, send: arcFor(options) })
}

/**
 * Pays for a draft, and submits it to a server.
 *
 * @param payments From {@link openPayments}: undefined for fake money.
 * @throws as `Payments.pay` and `Payments.submit`; with fake money CommandError (`refused`) if another transaction counts.
 */
export async function payAndSubmit(
  payments: Payments | undefined,
  { draft, purpose, to }: { draft: Draft; purpose: Purpose; to: Destination },
): Promise<Paid> {
  if (payments !== undefined) {
    const paid = await payments.pay(draft, purpose)
    await payments.submit(paid, purpose, to)
    return paid
  }
  const paid = await FAKE_PAYER.pay(draft)
  const said = await to.submit({ ...paid, ...purpose })
  if (said.kind === 'conflict') throw new CommandError(said.why, { exit: 'refused' })
  return paid
}

/**
 * The transactions in files, each with its proof or its ancestors.
 *
 * @param paths Files, or folders to search, with BEEF as bytes or as hex.
 * @throws CommandError (`usage`) if a path cannot be read or has no transaction, or a transaction has neither proof nor
 * ancestors.
 */
export async function readTransactions(paths: string[]): Promise<Transaction[]> {
  const found = await findTransactions(paths)
  if (found.transactions.length === 0 && found.skipped.length > 0)
    throw usageError(`there is no transaction in ${found.skipped.join(', ')}`)
  const read: Transaction[] = []
  for (const transaction of found.transactions) {
    const { txid } = transaction
    const { value: beef } = await found.beefsOf(transaction).next()
    if (!found.isInBeef(transaction) || !beef)
      throw usageError(`${txid} carries no proof: provide its coins in a BEEF`)
    read.push(readBeefTransaction(beef, { txid, hash: nativeHash256 }))
  }
  return read
}

/** Warns of earlier payments that are undecided or lost. */
export function reportFollowed(followed: readonly Followed[], output: CommandOutput): void {
  for (const { payment, outcome, why } of followed) {
    const { subject, txid } = payment
    if (outcome === 'undecided') output.warn(`${subject} (${txid}) is still undecided: ${why}`)
    if (outcome === 'lost') output.warn(`${subject} (${txid}) is lost, and its coins are free: ${why}`)
  }
}

/** The rate of fees, as part of a sentence. */
export function feeRateText({
  wallet,
  feeRate = DEFAULT_FEE_RATE,
}: Pick<PaymentOptions, 'wallet' | 'feeRate'>): string {
  return wallet === undefined ? `at ${feeRate} satoshis per 1,000 bytes` : 'at the rate of the wallet'
}

/**
 * The command line to run next, with the server, the tree and the payer of this one.
 *
 * @param words The words of the command, without options that both have.
 */
export function nextCommand(
  words: readonly string[],
  given: { url: string; genesis?: string | undefined } & Pick<PaymentOptions, 'wallet' | 'keyFile' | 'coins'>,
): string {
  const { url, genesis, wallet, keyFile, coins } = given
  const options = [
    ...(url === defaultUrl() ? [] : ['--url', url]),
    ...(genesis === undefined ? [] : ['--genesis', genesis]),
    ...(wallet === undefined ? [] : ['--wallet', wallet]),
    ...(keyFile === undefined ? [] : ['--key-file', keyFile]),
    ...(coins.length === 0 ? [] : ['--coins', ...coins]),
  ]
  return ['minetree', ...words, ...options.map(shellWord)].join(' ')
}

export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

export type Ask = (question: string) => Promise<string>

/** Asks on the terminal; undefined unless standard input and standard error are terminals. */
export function terminalAsk(signal: AbortSignal): Ask | undefined {
  const { stdin, stderr } = process
  if (!stdin.isTTY || !stderr.isTTY) return undefined
  return async (question) => {
    const terminal = createInterface({ input: stdin, output: stderr })
    try {
      return await terminal.question(question, { signal })
    } finally {
      terminal.close()
    }
  }
}

/**
 * Shows what will be paid for, and asks the user to agree before anything is.
 *
 * @throws CommandError if the user refuses, or cannot be asked; the reason of the signal.
 */
export async function confirmPayment(
  lines: readonly string[],
  { ask, yes, output, signal }: Pick<PaymentOptions, 'ask' | 'yes' | 'output' | 'signal'>,
): Promise<void> {
  for (const line of lines) output.note(line)
  signal.throwIfAborted()
  if (yes) return
  if (ask === undefined) throw usageError('nothing was paid: add --yes to pay without being asked')
  const answer = await ask(`${output.errorColors.yellow('minetree:')} pay? [y/N] `)
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new CommandError('nothing was paid', { exit: 'refused' })
}
