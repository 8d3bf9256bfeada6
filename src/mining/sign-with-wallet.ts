import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { lockIn, reasonAgainst } from '../../backend/src/protocol/block-rules.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { runScripts } from '../../backend/src/protocol/run-scripts.js'
import type { Transaction, WalletInterface } from '../../backend/src/protocol/sdk-types.js'
import { MiningError } from './mining-error.js'
import { preimageView } from './mint-transaction.js'

/** The part of a wallet (BRC-100) that drafts transactions and signs them. */
export type MintWallet = Pick<WalletInterface, 'createAction' | 'signAction' | 'abortAction'>

type Action = Parameters<MintWallet['createAction']>[0]

/** A covenant of version 2 accepts no other version, and other versions let unlocking scripts hold code (Chronicle). */
const VERSION = 1

/**
 * Has a wallet draft a transaction and sign it, without sending it. The draft is checked before anything is signed, and so is
 * what comes back: it is the draft with signatures, miners take it, and a block can hold it at once. If anything fails, the
 * wallet gets its coins back.
 *
 * @param options.check Whether it is what was asked for; called with the draft, and with the signed transaction.
 * @param options.unlock The unlocking scripts of the inputs that are not the wallet's, by input.
 * @param options.keep Stores the signed transaction.
 * @returns The signed transaction, with what it spends.
 * @throws MiningError `BAD_WALLET`; what `check`, `unlock` and `keep` throw; whatever else the wallet throws.
 */
export async function signWithWallet(options: {
  wallet: MintWallet
  action: Pick<Action, 'description' | 'inputBEEF' | 'inputs' | 'outputs'>
  check: (transaction: Transaction) => void
  unlock: (drafted: Transaction) => Promise<Record<number, { unlockingScript: string }>>
  keep?: (transaction: Transaction) => Promise<void>
}): Promise<Transaction> {
  const { wallet, action, check, unlock, keep } = options
  const { signableTransaction } = await wallet.createAction({
    ...action,
    version: VERSION,
    lockTime: 0,
    // Names and ordinals follow the order of inputs and outputs. Without inputs of ours, a wallet would sign at once.
    options: { randomizeOutputs: false, noSend: true, signAndProcess: false },
  })
  if (signableTransaction === undefined)
    throw new MiningError('BAD_WALLET', 'the wallet returned no transaction to sign')
  const { reference } = signableTransaction
  try {
    const drafted = readTransactionOf(signableTransaction.tx)
    requireMineable(drafted)
    check(drafted)
    const wanted = partsOf(drafted)
    const spends = await unlock(drafted)
    const signed = await wallet.signAction({ reference, spends, options: { noSend: true } })
    if (signed.tx === undefined)
      throw new MiningError('BAD_WALLET', 'the wallet returned no signed transaction')
    const transaction = readTransactionOf(signed.tx)
    if (partsOf(transaction) !== wanted)
      throw new MiningError('BAD_WALLET', 'the wallet signed another transaction than it drafted')
    requireMineable(transaction)
    check(transaction)
    requireSigned(transaction)
    await keep?.(transaction)
    return transaction
  } catch (error) {
    // Nothing was sent: the wallet can use the reserved coins again.
    await wallet.abortAction({ reference }).catch(() => {})
    throw error
  }
}

/** In satoshis. @throws MiningError `BAD_WALLET` if it is unknown or negative. */
export function feeOf(transaction: Transaction): number {
  let fee = 0
  for (const { sourceTransaction, sourceOutputIndex } of transaction.inputs) {
    const spent = sourceTransaction?.outputs[sourceOutputIndex]?.satoshis
    if (spent === undefined)
      throw new MiningError('BAD_WALLET', 'the wallet omitted a transaction that it spends')
    fee += spent
  }
  for (const { satoshis = 0 } of transaction.outputs) fee -= satoshis
  if (fee < 0) throw new MiningError('BAD_WALLET', `the wallet pays out ${-fee} satoshis more than it spends`)
  return fee
}

/** What a wallet drafted or signed. @throws MiningError `BAD_WALLET` if it cannot be read. */
function readTransactionOf(beef: number[] | Uint8Array): Transaction {
  try {
    return readBeefTransaction(Uint8Array.from(beef))
  } catch (cause) {
    if (!(cause instanceof BeefError)) throw cause
    throw new MiningError('BAD_WALLET', `the wallet returned an unreadable transaction: ${cause.message}`, {
      cause,
    })
  }
}

/** The next block could hold it, by the rules that servers and clients apply. @throws MiningError `BAD_WALLET`. */
function requireMineable(transaction: Transaction): void {
  const view = preimageView(transaction)
  const lock = lockIn(view)
  const reason =
    (view.version === VERSION ? undefined : `has version ${view.version}, must be ${VERSION}`) ??
    reasonAgainst(view) ??
    (lock && `has the lock time ${view.lockTime} with inputs that are not final`)
  if (reason !== undefined)
    throw new MiningError('BAD_WALLET', `the wallet drafted a transaction that ${reason}`)
  feeOf(transaction)
}

/** All that a draft fixes: everything but the unlocking scripts. */
function partsOf(transaction: Transaction): string {
  const { version, lockTime, inputs, outputs } = preimageView(transaction)
  return JSON.stringify([version, lockTime, inputs, outputs.map(({ bytes }) => toHex(bytes))])
}

/** In the units of `runScripts`: about a hundred signatures. */
const MAX_SCRIPT_WORK = 50_000_000

/** @throws MiningError `BAD_WALLET` if the script of any input fails. */
function requireSigned(transaction: Transaction): void {
  const spent = transaction.inputs.map(({ sourceTransaction, sourceOutputIndex }) => {
    const { satoshis = 0, lockingScript } = sourceTransaction?.outputs[sourceOutputIndex] ?? {}
    return { satoshis, lockingScript: Uint8Array.from(lockingScript?.toUint8Array() ?? []) }
  })
  const raw = Uint8Array.from(transaction.toUint8Array())
  try {
    for (const _ of runScripts([{ txid: transaction.id('hex'), raw, spent }], { maxWork: MAX_SCRIPT_WORK }));
  } catch (cause) {
    const reason = messageOf(cause)
    throw new MiningError('BAD_WALLET', `the wallet signed a transaction that miners reject: ${reason}`, {
      cause,
    })
  }
}

/** BRC-100: descriptions have 5 to 50 bytes. */
export function described(text: string): string {
  return text.length > 50 ? `${text.slice(0, 47)}...` : text
}
