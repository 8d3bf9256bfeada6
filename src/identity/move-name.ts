import { P2PKH, ProtoWallet, PushDrop } from '@bsv/sdk'
import { p2pkhOwner } from '../../backend/src/protocol/address.js'
import { concatBytes, toHex } from '../../backend/src/protocol/bytes.js'
import { ownerOf } from '../../backend/src/protocol/inscription.js'
import { successorOf } from '../../backend/src/protocol/ordinal-flow.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import { MiningError } from '../mining/mining-error.js'
import { type Draft, type DraftInput, type DraftOutput, inputOf } from '../payments/draft.js'
import { NOBODY } from '../payments/fake.js'
import type { PayingWallet } from '../payments/wallet.js'
import { NAME_BASKET, nameKey, walletLock, walletUnlock } from '../payments/wallet-keys.js'
import { type BindingSigner, bindingIn, bindingLock } from './binding-lock.js'
import { bindingOf, IdentityError, type NameCoin } from './name-coin.js'

/** The part of a wallet (BRC-100) that holds and moves names. */
export type BindingWallet = PayingWallet & BindingSigner

/** The holder of a name: a wallet, a key, or nobody. Where money is fake, anyone moves names without an owner. */
export interface Holder {
  wallet?: BindingWallet
  key?: sdk.PrivateKey
}

export interface NameMove {
  coin: NameCoin
  /** The lock of the output that gets the name: by {@link bindingLock}, or P2PKH, which leaves it unbound. */
  lock: Uint8Array
  /** An inscription, which follows the lock. */
  behind?: Uint8Array | undefined
  holder: Holder
  /** In satoshis. */
  maxFee?: number
  /** Outputs after that of the name. */
  outputs?: readonly DraftOutput[]
}

/** A name is an ordinal: it lives in outputs of 1 satoshi. */
const NAME_SATOSHIS = 1

/**
 * The draft of a move. The name is the first input and the lock the first output, so the ordinal goes there (BRC-159). A wallet
 * that gets the name keeps it, with what it needs to spend it.
 *
 * @throws IdentityError `NOT_YOURS` if neither the key nor the wallet can spend the name; what the wallet throws.
 */
export async function draftMove(move: NameMove): Promise<Draft> {
  const { coin, outputs = [], maxFee = Number.POSITIVE_INFINITY } = move
  const lockingScript = concatBytes(move.lock, move.behind ?? new Uint8Array())
  const holder = { ...move.holder, ...(move.holder.wallet && { wallet: askedOnce(move.holder.wallet) }) }
  const description = `The name ${coin.name}`
  const input: DraftInput = {
    ...{ source: coin.transaction, vout: coin.outpoint.vout, description },
    unlock: await unlockOf(coin, holder),
  }
  const basket = holder.wallet && (await basketOf(holder.wallet, move))
  return {
    what: `the transaction that moves ${coin.name}`,
    description: `Move the name ${coin.name}`,
    inputs: [input],
    outputs: [{ satoshis: NAME_SATOSHIS, lockingScript, description, basket }, ...outputs],
    maxFee,
    check: (transaction) => requireMoved(transaction, inputOf(transaction, input)),
  }
}

/**
 * A move that inscribes outputs on a name, the first of them on the name itself. An identity binding stays.
 *
 * @param site.lock The holder's lock, with which each output begins.
 */
export async function inscribingMove(
  { coin, holder }: Pick<NameMove, 'coin' | 'holder'>,
  {
    lock,
    outputs,
  }: { lock: Uint8Array; outputs: readonly Pick<DraftOutput, 'satoshis' | 'lockingScript'>[] },
): Promise<Pick<NameMove, 'lock' | 'behind' | 'outputs'>> {
  const [root, ...files] = outputs
  const signer = bindingOf(coin).state === 'bound' ? signerOf(holder) : undefined
  return {
    lock: signer === undefined ? lock : await bindingLock({ coin, signer }),
    behind: root?.lockingScript.subarray(lock.length),
    outputs: files.map((file) => ({ ...file, description: `A file of ${coin.name}` })),
  }
}

/** The signer for a holder; undefined for nobody. */
export function signerOf({ wallet, key }: Holder): BindingSigner | undefined {
  return wallet ?? (key && new ProtoWallet(key))
}

/** A wallet that is asked for each key once, because it may ask its user each time. After a refusal it is asked again. */
export function askedOnce(wallet: BindingWallet): BindingWallet {
  const known = new Map<string, ReturnType<BindingWallet['getPublicKey']>>()
  return {
    createAction: (args) => wallet.createAction(args),
    signAction: (args) => wallet.signAction(args),
    abortAction: (args) => wallet.abortAction(args),
    createSignature: (args) => wallet.createSignature(args),
    getPublicKey(args) {
      const id = JSON.stringify(args)
      const asked = known.get(id) ?? wallet.getPublicKey(args)
      known.set(id, asked)
      asked.catch(() => known.delete(id))
      return asked
    },
  }
}

/** The basket in which a wallet keeps a name, if the new lock is its own. */
async function basketOf(
  wallet: BindingWallet,
  { coin, lock }: Pick<NameMove, 'coin' | 'lock'>,
): Promise<DraftOutput['basket']> {
  const kept = (key: object) => ({ name: NAME_BASKET, customInstructions: JSON.stringify(key) })
  if (toHex(await walletLock(wallet, coin.name)) === toHex(lock)) return kept(nameKey(coin.name))
  const binding = bindingIn({ coin, lock })
  if (binding.state !== 'bound') return undefined
  const { publicKey } = await wallet.getPublicKey({ identityKey: true })
  if (binding.identityKey !== publicKey) return undefined
  // The key does not contain the name, so the name is added.
  return kept({
    protocolID: [0, binding.protocol],
    keyID: binding.keyId,
    counterparty: 'anyone',
    name: coin.name,
  })
}

/** @throws IdentityError `NOT_YOURS`. */
async function unlockOf(
  coin: NameCoin,
  { wallet, key }: Holder,
): Promise<sdk.ScriptTemplateUnlock | undefined> {
  const binding = bindingOf(coin)
  const owner = ownerOf(coin.lockingScript)
  const signer = signerOf({ wallet, key })
  if (wallet === undefined && owner === NOBODY) return undefined
  if (signer === undefined) throw notYours(coin, 'no key was given')
  if (binding.state === 'bound') {
    const { publicKey } = await signer.getPublicKey({ identityKey: true })
    if (publicKey === binding.identityKey)
      return pushDropUnlock(signer, [0, binding.protocol], binding.keyId, 'anyone')
    if (wallet !== undefined) throw notYours(coin, `the wallet's identity key is ${publicKey}`)
  }
  if (wallet !== undefined) return await unlockOfWallet(coin, wallet)
  const publicKey = key?.toPublicKey()
  if (key !== undefined && owner === publicKey?.toHash('hex')) return new P2PKH().unlock(key)
  throw notYours(coin, `${publicKey?.toString()} does not hold it`)
}

function pushDropUnlock(
  signer: BindingSigner,
  ...key: [protocolID: [0, string], keyID: string, counterparty: string]
): sdk.ScriptTemplateUnlock {
  return new PushDrop(signer as sdk.WalletInterface).unlock(...key)
}

/** Unlocks a name that a wallet has locked with a key of its own. @throws IdentityError `NOT_YOURS`. */
async function unlockOfWallet(coin: NameCoin, wallet: BindingWallet): Promise<sdk.ScriptTemplateUnlock> {
  if (ownerOf(coin.lockingScript) === p2pkhOwner(await walletLock(wallet, coin.name)))
    return await walletUnlock(wallet, coin.name)
  throw notYours(coin, 'the wallet has no key for it')
}

function notYours({ name, outpoint }: NameCoin, why: string): IdentityError {
  return new IdentityError('NOT_YOURS', `cannot spend ${name} at ${formatOutpoint(outpoint)}: ${why}`)
}

/** @throws MiningError `BAD_WALLET` if the ordinal of an input does not go into the first output. */
function requireMoved({ inputs, outputs }: sdk.Transaction, input: number): void {
  const inputValues = inputs.map((each) => each.sourceTransaction?.outputs[each.sourceOutputIndex]?.satoshis)
  const outputValues = outputs.map(({ satoshis = 0 }) => satoshis)
  const to = successorOf({ inputValues, outputValues, input })
  if (to.kind === 'output' && to.vout === 0) return
  throw new MiningError('BAD_WALLET', 'the wallet put a coin before the name, which would lose it')
}
