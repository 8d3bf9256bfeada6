import { createInterface } from 'node:readline/promises'
import { DEFAULT_FEE_RATE } from '../mining/fund-with-key.js'
import { CommandError } from './command.js'
import type { MintFolder } from './mint-folder.js'
import type { SendOutcome } from './mint-services.js'
import type { CommandOutput } from './output.js'

// What commands that pay have in common.

/** Who pays, and how. */
export interface PaymentOptions {
  /** The URL of a wallet (BRC-100) with a JSON API. */
  wallet?: string
  /** A file with a key as WIF. */
  keyFile?: string
  /** Files with coins of the key. */
  coins: string[]
  /** Satoshis per 1,000 bytes. */
  feeRate?: number
  /** The folder for paid transactions, except those with fake funding. */
  folder: string
  /** The URL of an ARC service. */
  arc?: string
  arcApiKey?: string
  /** Pay without being asked. */
  yes: boolean
  ask: Ask | undefined
  output: CommandOutput
  signal: AbortSignal
}

/** @throws CommandError (`usage`) if both a wallet and a key are to pay. */
export function requireOnePayer({ wallet, keyFile }: Pick<PaymentOptions, 'wallet' | 'keyFile'>): void {
  if (wallet !== undefined && keyFile !== undefined)
    throw new CommandError('use either --wallet or --key-file, not both', { exit: 'usage' })
}

/** At what rate fees are paid, as part of a sentence. */
export function feeRateText({
  wallet,
  feeRate = DEFAULT_FEE_RATE,
}: Pick<PaymentOptions, 'wallet' | 'feeRate'>): string {
  return wallet === undefined ? `at ${feeRate} satoshis per 1,000 bytes` : 'at the rate of the wallet'
}

/** Asks the user a question. */
export type Ask = (question: string) => Promise<string>

/** Asks on the terminal; undefined unless standard input and standard error are one. */
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
 * Asks the user to agree before anything is paid.
 *
 * @throws CommandError if the user refuses, or cannot be asked.
 */
export async function confirmPayment({
  ask,
  isAgreed,
  output,
}: {
  ask: Ask | undefined
  /** `--yes`. */
  isAgreed: boolean
  output: CommandOutput
}): Promise<void> {
  if (isAgreed) return
  if (ask === undefined)
    throw new CommandError('nothing was paid: add --yes to pay without being asked', { exit: 'usage' })
  const answer = await ask(`${output.errorColors.yellow('minetree:')} pay? [y/N] `)
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new CommandError('nothing was paid', { exit: 'refused' })
}

/**
 * Records what the network says of a stored transaction.
 *
 * @param sent.later What to do if that is not known yet, as the end of a sentence.
 * @throws CommandError unless the network accepts it.
 */
export async function recordOutcome(
  folder: MintFolder,
  { txid, outcome: { kind, why }, later }: { txid: string; outcome: SendOutcome; later: string },
): Promise<void> {
  if (kind === 'undecided') throw undecided({ txid, why, later })
  await folder.setState(txid, kind === 'refused' ? 'lost' : 'sent')
  if (kind === 'refused') throw new CommandError(`the network rejects ${txid}: ${why}`, { exit: 'refused' })
}

export function undecided({ txid, why, later }: Record<'txid' | 'why' | 'later', string>): CommandError {
  return new CommandError(`it is not known yet whether the network accepts ${txid}: ${why}; ${later}`, {
    exit: 'unavailable',
  })
}
