import { PublicKey } from '@bsv/sdk'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import { MintError, requireFinal, rulesOf } from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { Transaction, WalletInterface } from '../../backend/src/protocol/sdk-types.js'
import { NAME_VOUT } from '../client/verify-name.js'
import { requireFee } from './budget.js'
import { p2pkhLockOf } from './fund-with-key.js'
import { MiningError } from './mining-error.js'
import {
  finishMint,
  type MintPayer,
  type MintPlan,
  type PaidMint,
  preimageView,
  type SolvedPlan,
  solvePlan,
  unlockNode,
} from './mint-transaction.js'
import { described, feeOf, type MintWallet, signWithWallet } from './sign-with-wallet.js'

/**
 * A wallet must be given the length of an unlocking script before it decides how many change outputs it adds, and the
 * script contains all outputs. This many bytes are reserved for change: about thirty P2PKH outputs.
 */
const ROOM_FOR_CHANGE = 1024

/**
 * Mints with a wallet (BRC-100): it chooses the coins, pays the fee by its own rate and signs its inputs. The mint is
 * first signed (`noSend`), checked and stored, and only then sent by the wallet (`sendWith`): stopping at any point loses
 * no mint that was sent.
 *
 * @param options.source The transaction that holds the node, with its proof or ancestors.
 * @param options.maxFee In satoshis; the wallet's draft is compared with it before anything is signed.
 * @param options.basket Where the wallet keeps the name, with what it needs to spend it; by default, the wallet does not
 * keep the name.
 * @param options.keep Stores the signed mint.
 * @throws MintError if the plan does not hold; MiningError `OVER_BUDGET`; MiningError `BAD_WALLET` if the wallet makes
 * another transaction than requested; {@link WalletSendError}; whatever else the wallet throws.
 */
export async function fundWithWallet(options: {
  plan: MintPlan
  source: Transaction
  wallet: MintWallet
  maxFee?: number
  basket?: { name: string; customInstructions: string }
  keep?: (mint: PaidMint) => Promise<void>
}): Promise<PaidMint> {
  const { wallet, source, basket, keep, maxFee = Number.POSITIVE_INFINITY } = options
  const plan = solvePlan(options.plan)
  const { node, mint } = plan
  const { name } = mint
  const descriptions = [`The node of ${mint.domain || 'the root'}`, `The node of ${name}`, `The name ${name}`]
  let paid: PaidMint | undefined
  await signWithWallet({
    wallet,
    action: {
      description: described(`Mint the name ${name}`),
      inputBEEF: Array.from(writeBeef(source)),
      inputs: [
        {
          outpoint: formatOutpoint(node.outpoint).replace('_', '.'),
          inputDescription: described(`The node to mine ${name} from`),
          unlockingScriptLength: lengthWithoutChange(plan) + ROOM_FOR_CHANGE,
        },
      ],
      outputs: plan.outputs.map(({ satoshis, lockingScript }, vout) => ({
        satoshis,
        lockingScript: toHex(lockingScript),
        outputDescription: described(descriptions[vout] ?? ''),
        ...(vout === NAME_VOUT &&
          basket && { basket: basket.name, customInstructions: basket.customInstructions }),
      })),
    },
    check(transaction) {
      inputOf(transaction, plan)
      requireOutputs(transaction, plan)
      requireMintable(transaction, plan)
      requireFee({ name, fee: feeOf(transaction), maxFee })
    },
    async unlock(drafted) {
      const input = inputOf(drafted, plan)
      const unlockingScript = unlockNode({ plan, transaction: preimageView(drafted), input })
      return { [input]: { unlockingScript: toHex(unlockingScript) } }
    },
    async keep(transaction) {
      const signed = finishMint({ plan, transaction, input: inputOf(transaction, plan) })
      paid = { ...signed, beef: writeBeef(transaction), fee: feeOf(transaction) }
      await keep?.(paid)
    },
  })
  if (paid === undefined) throw new Error(`the mint of ${name} was not checked`)
  await sendWithWallet(wallet, { txid: paid.transaction.id('hex'), name })
  return paid
}

/** A wallet did not send a mint, or does not say whether it did. */
export class WalletSendError extends Error {
  override readonly name = 'WalletSendError'

  /** @param isFinal Whether the network rejects the mint for good; false if that is not known. */
  constructor(
    readonly txid: string,
    readonly isFinal: boolean,
    reason: string,
    options: { cause?: unknown } = {},
  ) {
    super(`the wallet did not send ${txid}: ${reason}`, options)
  }
}

/**
 * Makes a wallet send a transaction that it signed before.
 *
 * @param sent The name that it mints, or what to tell the user of the wallet.
 * @throws WalletSendError
 */
export async function sendWithWallet(
  wallet: Pick<MintWallet, 'createAction'>,
  sent: { txid: string } & ({ name: string } | { description: string }),
): Promise<void> {
  const { txid } = sent
  const description = 'name' in sent ? `Send the mint of ${sent.name}` : sent.description
  let results: Awaited<ReturnType<MintWallet['createAction']>>['sendWithResults']
  try {
    const { sendWithResults } = await wallet.createAction({
      description: described(description),
      // Synchronous: a mint that miners reject must not be submitted anywhere.
      options: { sendWith: [txid], acceptDelayedBroadcast: false },
    })
    results = sendWithResults
  } catch (cause) {
    const [review] = reviewsOf(cause).filter((each) => each.txid === txid)
    const isFinal = review?.status === 'doubleSpend' || review?.status === 'invalidTx'
    // The message of such an error says only that there is a status.
    const reason = review === undefined ? messageOf(cause) : String(review.status)
    throw new WalletSendError(txid, isFinal, reason, { cause })
  }
  const status = Array.isArray(results) ? results.find((each) => each.txid === txid)?.status : undefined
  if (status === 'failed') throw new WalletSendError(txid, true, 'the network rejects it')
  if (status === undefined) throw new WalletSendError(txid, false, 'the wallet does not report its status')
}

/** The status of each transaction in an error with code 5 (WERR_REVIEW_ACTIONS). */
function reviewsOf(error: unknown): { txid?: unknown; status?: unknown }[] {
  const results = (error as { reviewActionResults?: unknown } | undefined)?.reviewActionResults
  return Array.isArray(results) ? results.filter((each) => typeof each === 'object' && each !== null) : []
}

function lengthWithoutChange(plan: SolvedPlan): number {
  const { outpoint } = plan.node
  const transaction = {
    version: 1,
    lockTime: 0,
    inputs: [{ ...outpoint, sequence: 0 }],
    outputs: [],
  }
  return unlockNode({ plan, transaction, input: 0 }).length
}

function inputOf(transaction: Transaction, { node }: SolvedPlan): number {
  const { txid, vout } = node.outpoint
  const input = preimageView(transaction).inputs.findIndex((each) => each.txid === txid && each.vout === vout)
  if (input === -1) throw new MiningError('BAD_WALLET', 'the wallet left the node out of the transaction')
  return input
}

/** Checked before anything is signed: the covenant would reject another version or lock time. */
function requireMintable(transaction: Transaction, { deployment, mint }: SolvedPlan): void {
  try {
    requireFinal(transaction, rulesOf(mint.restated, deployment))
  } catch (cause) {
    if (!(cause instanceof MintError)) throw cause
    throw new MiningError('BAD_WALLET', `the wallet drafted no valid mint: ${cause.message}`, { cause })
  }
}

function requireOutputs(transaction: Transaction, { outputs }: SolvedPlan): void {
  for (const [vout, { satoshis, lockingScript }] of outputs.entries()) {
    const output = transaction.outputs[vout]
    if (output?.satoshis !== satoshis || output.lockingScript.toHex() !== toHex(lockingScript))
      throw new MiningError('BAD_WALLET', `the wallet changed output ${vout}`)
  }
}

/** The part of a wallet (BRC-100) that is needed if it is to own the names. */
export type NameWallet = MintWallet & Pick<WalletInterface, 'getPublicKey'>

/** The BRC-43 protocol of the keys of names; level 0, because the wallet uses them for nothing else. */
const PROTOCOL: [0, string] = [0, 'minetree names']
/** Where a wallet keeps its names. */
export const NAME_BASKET = 'minetree names'

/** The key that a wallet locks a name with, for `getPublicKey` and `createSignature`. */
export function nameKey(name: string): { protocolID: [0, string]; keyID: string; counterparty: 'self' } {
  return { protocolID: PROTOCOL, keyID: name, counterparty: 'self' }
}

/**
 * Pays with a wallet (BRC-100), which sends the mint to the network and keeps its own names in a basket.
 *
 * @param options.keep Stores a signed mint before the wallet sends it.
 */
export function payWithWallet(
  wallet: NameWallet,
  { keep }: { keep?: (mint: PaidMint) => Promise<void> } = {},
): MintPayer {
  /** By name: the wallet may ask its user each time, so it is asked once. */
  const known = new Map<string, Uint8Array>()
  const ownLock = async (name: string): Promise<Uint8Array> => {
    const before = known.get(name)
    if (before !== undefined) return before
    const { publicKey } = await wallet.getPublicKey(nameKey(name))
    const lock = p2pkhLockOf(PublicKey.fromString(publicKey))
    known.set(name, lock)
    return lock
  }
  return {
    ownerLock: ownLock,
    async pay({ plan, source, maxFee }) {
      const name = decodeMineNode(plan.node.lockingScript).domain + plan.character
      const own = toHex(await ownLock(name)) === toHex(plan.ownerLock)
      const basket = { name: NAME_BASKET, customInstructions: JSON.stringify(nameKey(name)) }
      return await fundWithWallet({
        ...{ plan, source, wallet, maxFee },
        ...(own && { basket }),
        keep,
      })
    },
  }
}
