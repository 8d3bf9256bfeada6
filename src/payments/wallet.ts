import { BEEF_V1, Beef } from '@bsv/sdk'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBeefTransaction, writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { lockIn, reasonAgainst } from '../../backend/src/protocol/block-rules.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { runScripts } from '../../backend/src/protocol/run-scripts.js'
import type { Transaction, WalletInterface } from '../../backend/src/protocol/sdk-types.js'
import { MiningError } from '../mining/mining-error.js'
import { preimageView } from '../mining/mint-transaction.js'
import {
  type Draft,
  feeOf,
  inputOf,
  type Keep,
  type Paid,
  type Payer,
  partsOf,
  requireDrafted,
  type SendOutcome,
  startTransaction,
} from './draft.js'
import { bytesOf, type WalletBytes } from './wallet-keys.js'

/** The part of a wallet (BRC-100) that drafts transactions, signs them and sends them. */
export type PayingWallet = Pick<WalletInterface, 'createAction' | 'signAction' | 'abortAction'>

/** A covenant of version 2 accepts no other version, and other versions let unlocking scripts hold code (Chronicle). */
const VERSION = 1

/**
 * Pays with a wallet (BRC-100): it chooses the coins, pays the fee by its own rate and signs its inputs. A transaction is first
 * signed (`noSend`), checked and stored, and only then sent by the wallet (`sendWith`), so that stopping at any point loses no
 * sent transaction. A signed one keeps the wallet's coins reserved until it is sent.
 */
export function payWithWallet(wallet: PayingWallet): Payer {
  return {
    pay: async (draft, keep) => await signWithWallet(wallet, draft, keep),
    send: async (transaction, description) =>
      await sendWithWallet(wallet, { txid: transaction.id('hex'), description }),
  }
}

/**
 * Lets a wallet draft a transaction and sign it, without sending it. The draft is checked before anything is signed, and then the
 * result: it must be the draft with signatures, acceptable to miners, and valid in the next block. If anything fails, the wallet
 * gets its coins back.
 */
async function signWithWallet(wallet: PayingWallet, draft: Draft, keep: Keep | undefined): Promise<Paid> {
  const { signableTransaction } = await wallet.createAction({
    ...(await actionOf(draft)),
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
    requireDrafted(drafted, draft)
    const wanted = partsOf(drafted)
    const spends = await unlocked(drafted, draft)
    const signed = await wallet.signAction({ reference, spends, options: { noSend: true } })
    if (signed.tx === undefined)
      throw new MiningError('BAD_WALLET', 'the wallet returned no signed transaction')
    const transaction = readTransactionOf(signed.tx)
    if (partsOf(transaction) !== wanted)
      throw new MiningError('BAD_WALLET', 'the wallet signed another transaction than it drafted')
    requireMineable(transaction)
    requireDrafted(transaction, draft)
    requireSigned(transaction)
    draft.checkSigned?.(transaction)
    const paid = { transaction, beef: writeBeef(transaction), fee: feeOf(transaction) }
    await keep?.(paid)
    return paid
  } catch (error) {
    // Nothing was sent: the wallet can use the reserved coins again.
    await wallet.abortAction({ reference }).catch(() => {})
    throw error
  }
}

type Action = Parameters<PayingWallet['createAction']>[0]

async function actionOf(
  draft: Draft,
): Promise<Pick<Action, 'description' | 'inputBEEF' | 'inputs' | 'outputs'>> {
  const { description, inputs, outputs } = draft
  const started = startTransaction(draft)
  const sources = new Beef(BEEF_V1)
  for (const { source } of inputs) sources.mergeTransaction(source)
  const wanted = inputs.map(async ({ source, vout, unlock, room = 0, ...input }, index) => ({
    outpoint: `${source.id('hex')}.${vout}`,
    inputDescription: described(input.description),
    unlockingScriptLength: ((await unlock?.estimateLength(started, index)) ?? 0) + room,
  }))
  return {
    description: described(description),
    ...(inputs.length > 0 && { inputBEEF: sources.toBinary(), inputs: await Promise.all(wanted) }),
    outputs: outputs.map(({ satoshis, lockingScript, basket: { name, ...kept } = {}, description }) => ({
      satoshis,
      lockingScript: toHex(lockingScript),
      outputDescription: described(description),
      ...(name !== undefined && { basket: name, ...kept }),
    })),
  }
}

/** The unlocking scripts of the draft's inputs, by input index. */
async function unlocked(
  drafted: Transaction,
  { inputs }: Draft,
): Promise<Record<number, { unlockingScript: string }>> {
  const spends: Record<number, { unlockingScript: string }> = {}
  for (const each of inputs) {
    const index = inputOf(drafted, each)
    const input = drafted.inputs[index]
    if (input !== undefined) input.sourceTransaction = each.source
    if (each.unlock !== undefined)
      spends[index] = { unlockingScript: (await each.unlock.sign(drafted, index)).toHex() }
  }
  return spends
}

/** A transaction that a wallet drafted or signed. @throws MiningError `BAD_WALLET` if it cannot be read. */
function readTransactionOf(beef: WalletBytes): Transaction {
  try {
    return readBeefTransaction(bytesOf(beef))
  } catch (cause) {
    if (!(cause instanceof BeefError)) throw cause
    throw new MiningError('BAD_WALLET', `the wallet returned an unreadable transaction: ${cause.message}`, {
      cause,
    })
  }
}

/** Checks that the next block could hold it, by the rules of servers and clients. @throws MiningError `BAD_WALLET`. */
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

/**
 * Lets a wallet sign a draft and send it.
 *
 * @param keep Stores the signed transaction before it is sent.
 * @throws MiningError `REFUSED` if the network rejects it, `UNDECIDED` if the wallet does not say whether it does.
 */
export async function signAndSend(wallet: PayingWallet, draft: Draft, keep?: Keep): Promise<Paid> {
  const paid = await signWithWallet(wallet, draft, keep)
  const txid = paid.transaction.id('hex')
  const outcome = await sendWithWallet(wallet, { txid, description: `Send ${draft.what}` })
  if (outcome.kind === 'refused') throw new MiningError('REFUSED', `${txid} is lost: ${outcome.why}`)
  if (outcome.kind === 'undecided')
    throw new MiningError('UNDECIDED', `it is not known whether ${txid} was sent: ${outcome.why}`)
  return paid
}

/** Makes a wallet send a transaction that it has signed. */
export async function sendWithWallet(
  wallet: Pick<PayingWallet, 'createAction'>,
  { txid, description }: { txid: string; description: string },
): Promise<SendOutcome> {
  try {
    const { sendWithResults } = await wallet.createAction({
      description: described(description),
      // Synchronous: what miners reject must not be submitted anywhere.
      options: { sendWith: [txid], acceptDelayedBroadcast: false },
    })
    const results: typeof sendWithResults | undefined = Array.isArray(sendWithResults) ? sendWithResults : []
    const status = results.find((each) => each.txid === txid)?.status
    if (status === undefined) return { kind: 'undecided', why: 'the wallet does not report its status' }
    if (status === 'failed') return { kind: 'refused', why: 'the wallet says that the network rejects it' }
    return { kind: 'accepted', why: 'the wallet has sent it' }
  } catch (cause) {
    const status = reviewsOf(cause).find((each) => each.txid === txid)?.status
    return {
      kind: status === 'doubleSpend' || status === 'invalidTx' ? 'refused' : 'undecided',
      // The message of such an error says only that there is a status.
      why: `the wallet did not send it: ${status === undefined ? messageOf(cause) : String(status)}`,
    }
  }
}

/** The status of each transaction in an error with code 5 (WERR_REVIEW_ACTIONS). */
function reviewsOf(error: unknown): { txid?: unknown; status?: unknown }[] {
  const results = (error as { reviewActionResults?: unknown } | undefined)?.reviewActionResults
  return Array.isArray(results) ? results.filter((each) => typeof each === 'object' && each !== null) : []
}

/** BRC-100: descriptions have 5 to 50 bytes. */
function described(text: string): string {
  return text.length > 50 ? `${text.slice(0, 47)}...` : text
}
