import {
  BEEF_V1,
  Beef,
  LockingScript,
  P2PKH,
  ProtoWallet,
  PublicKey,
  PushDrop,
  Transaction,
  UnlockingScript,
  Utils,
} from '@bsv/sdk'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { ownerOf } from '../../backend/src/protocol/inscription.js'
import { successorOf } from '../../backend/src/protocol/ordinal-flow.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import { NOBODY, randomTxid, singleTransactionPath } from '../mining/fake-funding.js'
import { addCoins, type Coin, DEFAULT_FEE_RATE, p2pkhLockOf } from '../mining/fund-with-key.js'
import { NAME_BASKET, nameKey } from '../mining/fund-with-wallet.js'
import { MiningError } from '../mining/mining-error.js'
import { described, feeOf, type MintWallet, signWithWallet } from '../mining/sign-with-wallet.js'
import { type BindingSigner, bindingIn } from './binding-lock.js'
import { IdentityError } from './identity-error.js'
import { bindingOf, type NameCoin } from './name-coin.js'

/** Where a name is to go. The name is the first input and the lock the first output, so its ordinal goes there (BRC-159). */
export interface NameMove {
  coin: NameCoin
  /** The lock of the output that gets the name: of {@link bindingLock}, or P2PKH, which leaves it unbound. */
  lock: Uint8Array
}

/** A name is an ordinal: it lives in outputs of 1 satoshi. */
const NAME_SATOSHIS = 1

/**
 * Moves a name with the key that holds it, and pays with P2PKH coins of the same key or of another one; the change goes back.
 *
 * @param options.coins Coins of 1 satoshi are not spent: they may be ordinals.
 * @param options.payer The key of the coins; by default, that of the name.
 * @param options.feeRate In satoshis per 1,000 bytes.
 * @param options.maxFee In satoshis.
 * @returns The signed transaction, with what it spends.
 * @throws IdentityError `NOT_YOURS`; MiningError `NO_FUNDS`, `OVER_BUDGET`.
 */
export async function moveWithKey(
  options: NameMove & {
    key: sdk.PrivateKey
    coins: readonly Coin[]
    payer?: sdk.PrivateKey
    feeRate?: number
    maxFee?: number
  },
): Promise<sdk.Transaction> {
  const { coin, key, coins, payer = key, feeRate = DEFAULT_FEE_RATE } = options
  const transaction = startMove(options, keyUnlock(coin, key))
  const change = { lockingScript: new P2PKH().lock(payer.toAddress()), satoshis: 0 }
  transaction.addOutput(change)
  const what = `the transaction that moves ${coin.name}`
  change.satoshis = await addCoins(transaction, { coins, key: payer, feeRate, missing: 0, what })
  requireFee(transaction.getFee(), options)
  await transaction.sign()
  return transaction
}

/**
 * Moves a name on a local network, where no coin needs to exist and nothing is signed by nobody: a name without an owner goes to
 * whoever asks.
 *
 * @param options.key The key that holds the name, unless nobody does.
 * @param options.source The txid that the fake coin spends; random by default.
 * @returns The transaction, and the BEEF that a local network accepts.
 * @throws IdentityError `NOT_YOURS`.
 */
export async function moveWithFakeFunding(
  options: NameMove & { key?: sdk.PrivateKey; source?: string },
): Promise<{ transaction: sdk.Transaction; beef: Uint8Array }> {
  const { coin, key, source = randomTxid() } = options
  const isNobodys = ownerOf(coin.lockingScript) === NOBODY
  if (!isNobodys && key === undefined) throw notYours(coin, 'no key was given')
  const transaction = startMove(options, isNobodys || key === undefined ? undefined : keyUnlock(coin, key))
  const height = coin.transaction.merklePath?.blockHeight ?? 1
  const funding = inBlock(
    new Transaction(
      1,
      [{ sourceTXID: source, sourceOutputIndex: 0, unlockingScript: new UnlockingScript() }],
      [{ satoshis: NAME_SATOSHIS + 1, lockingScript: new LockingScript() }],
    ),
    height,
  )
  transaction.addInput({
    sourceTransaction: funding,
    sourceOutputIndex: 0,
    unlockingScript: new UnlockingScript(),
  })
  await transaction.sign()
  inBlock(transaction, height + 1)
  // Proven transactions keep the order in which they are merged, and the last one is the subject.
  const beef = new Beef(BEEF_V1)
  beef.mergeTransaction(funding)
  beef.mergeTransaction(transaction)
  return { transaction, beef: Uint8Array.from(beef.toBinary()) }
}

function inBlock(transaction: sdk.Transaction, height: number): sdk.Transaction {
  transaction.merklePath = singleTransactionPath({ txid: transaction.id('hex'), height })
  return transaction
}

/** The part of a wallet (BRC-100) that holds and moves names. */
export type BindingWallet = MintWallet & BindingSigner

/** The same wallet, which is asked for each key once: it may have to ask its user each time. */
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
      return asked
    },
  }
}

/** A DER signature with its push, and a compressed public key with its push. */
const SIGNATURE_BYTES = 74
const KEY_BYTES = 34

/**
 * Moves a name that a wallet (BRC-100) holds: bound to its identity key, or locked as `fundWithWallet` locks names. The wallet
 * pays. The transaction is signed (`noSend`) and checked; {@link sendWithWallet} then has the wallet send it. Until that is done, the
 * wallet keeps the name for it, and moves it no other way.
 *
 * @param options.maxFee In satoshis; the wallet's draft is compared with it before anything is signed.
 * @param options.keep Stores the signed transaction. If it fails, the wallet gets the name back.
 * @returns The signed transaction, with what it spends.
 * @throws IdentityError `NOT_YOURS`; MiningError `OVER_BUDGET`; MiningError `BAD_WALLET` if the wallet makes another transaction
 * than requested; whatever else the wallet throws.
 */
export async function moveWithWallet(
  options: NameMove & {
    wallet: BindingWallet
    maxFee?: number
    keep?: (transaction: sdk.Transaction) => Promise<void>
  },
): Promise<sdk.Transaction> {
  const { coin, lock, keep } = options
  const wallet = askedOnce(options.wallet)
  const unlock = await walletUnlock(coin, wallet)
  const kept = await keptBy(wallet, options)
  return await signWithWallet({
    wallet,
    action: {
      description: described(`Move the name ${coin.name}`),
      inputBEEF: Array.from(writeBeef(coin.transaction)),
      inputs: [
        {
          outpoint: formatOutpoint(coin.outpoint).replace('_', '.'),
          inputDescription: described(`The name ${coin.name}`),
          unlockingScriptLength: unlock.length,
        },
      ],
      outputs: [
        {
          satoshis: NAME_SATOSHIS,
          lockingScript: toHex(lock),
          outputDescription: described(`The name ${coin.name}`),
          ...(kept && { basket: NAME_BASKET, customInstructions: JSON.stringify(kept) }),
        },
      ],
    },
    check(transaction) {
      requireMove(transaction, options)
      requireFee(feeOf(transaction), options)
    },
    async unlock(drafted) {
      const input = requireMove(drafted, options)
      return { [input]: { unlockingScript: (await unlock.sign(drafted, input)).toHex() } }
    },
    ...(keep && { keep }),
  })
}

/** The lock that keeps a name with a wallet, unbound. */
export async function walletLock(
  wallet: Pick<sdk.WalletInterface, 'getPublicKey'>,
  name: string,
): Promise<Uint8Array> {
  const { publicKey } = await wallet.getPublicKey(nameKey(name))
  return p2pkhLockOf(PublicKey.fromString(publicKey))
}

/** The key to spend a new output with, if it is the wallet's own. */
async function keptBy(wallet: BindingWallet, { coin, lock }: NameMove): Promise<object | undefined> {
  if (toHex(await walletLock(wallet, coin.name)) === toHex(lock)) return nameKey(coin.name)
  const binding = bindingIn({ coin, lock })
  if (binding.state !== 'bound') return undefined
  const { publicKey } = await wallet.getPublicKey({ identityKey: true })
  if (binding.identityKey !== publicKey) return undefined
  return { protocolID: [0, binding.protocol], keyID: binding.keyId, counterparty: 'anyone' }
}

function startMove({ coin, lock }: NameMove, unlock: sdk.ScriptTemplateUnlock | undefined): sdk.Transaction {
  const transaction = new Transaction()
  transaction.addInput({
    sourceTransaction: coin.transaction,
    sourceOutputIndex: coin.outpoint.vout,
    ...(unlock ? { unlockingScriptTemplate: unlock } : { unlockingScript: new UnlockingScript() }),
  })
  transaction.addOutput({ satoshis: NAME_SATOSHIS, lockingScript: LockingScript.fromHex(toHex(lock)) })
  return transaction
}

/** @throws IdentityError `NOT_YOURS`. */
function keyUnlock(coin: NameCoin, key: sdk.PrivateKey): sdk.ScriptTemplateUnlock {
  const binding = bindingOf(coin)
  const publicKey = key.toPublicKey()
  if (binding.state === 'bound' && binding.identityKey === publicKey.toString())
    return pushDropUnlock(new ProtoWallet(key), [0, binding.protocol], binding.keyId, 'anyone')
  if (ownerOf(coin.lockingScript) === publicKey.toHash('hex')) return new P2PKH().unlock(key)
  throw notYours(coin, `${publicKey.toString()} does not hold it`)
}

function pushDropUnlock(
  signer: BindingSigner,
  ...key: [protocolID: [0, string], keyID: string, counterparty: string]
): sdk.ScriptTemplateUnlock {
  return new PushDrop(signer as sdk.WalletInterface).unlock(...key)
}

/** @throws IdentityError `NOT_YOURS`. */
async function walletUnlock(
  coin: NameCoin,
  wallet: BindingWallet,
): Promise<{
  length: number
  sign(transaction: sdk.Transaction, input: number): Promise<sdk.UnlockingScript>
}> {
  const binding = bindingOf(coin)
  if (binding.state === 'bound') {
    const { publicKey } = await wallet.getPublicKey({ identityKey: true })
    if (publicKey !== binding.identityKey) throw notYours(coin, `the wallet's identity key is ${publicKey}`)
    const { sign } = pushDropUnlock(wallet, [0, binding.protocol], binding.keyId, 'anyone')
    return { length: SIGNATURE_BYTES, sign }
  }
  const key = nameKey(coin.name)
  const { publicKey } = await wallet.getPublicKey(key)
  const owner = ownerOf(coin.lockingScript)
  if (owner !== PublicKey.fromString(publicKey).toHash('hex'))
    throw notYours(coin, 'the wallet has no key for it')
  const { sign } = pushDropUnlock(wallet, key.protocolID, key.keyID, key.counterparty)
  const keyPush = { op: KEY_BYTES - 1, data: Utils.toArray(publicKey, 'hex') }
  return {
    length: SIGNATURE_BYTES + KEY_BYTES,
    async sign(transaction, input) {
      const { chunks } = await sign(transaction, input)
      return new UnlockingScript([...chunks, keyPush])
    },
  }
}

function notYours({ name, outpoint }: NameCoin, why: string): IdentityError {
  return new IdentityError('NOT_YOURS', `cannot spend ${name} at ${formatOutpoint(outpoint)}: ${why}`)
}

/**
 * Checks that a wallet's transaction moves the name into its first output, with the lock as requested.
 *
 * @returns The input that spends the name.
 * @throws MiningError `BAD_WALLET`.
 */
function requireMove(transaction: sdk.Transaction, { coin, lock }: NameMove): number {
  const { inputs, outputs } = transaction
  const wanted = formatOutpoint(coin.outpoint)
  const input = inputs.findIndex(
    ({ sourceTXID, sourceTransaction, sourceOutputIndex }) =>
      `${sourceTXID ?? sourceTransaction?.id('hex')}_${sourceOutputIndex}` === wanted,
  )
  if (input === -1) throw new MiningError('BAD_WALLET', 'the wallet left the name out of the transaction')
  const [output] = outputs
  if (output?.satoshis !== NAME_SATOSHIS || output.lockingScript.toHex() !== toHex(lock))
    throw new MiningError('BAD_WALLET', 'the wallet changed the output of the name')
  const inputValues = inputs.map((each) => each.sourceTransaction?.outputs[each.sourceOutputIndex]?.satoshis)
  const outputValues = outputs.map(({ satoshis = 0 }) => satoshis)
  const to = successorOf({ inputValues, outputValues, input })
  if (to.kind === 'output' && to.vout === 0) return input
  throw new MiningError('BAD_WALLET', 'the wallet put a coin before the name, which would lose it')
}

/** @throws MiningError `OVER_BUDGET`. */
function requireFee(
  fee: number,
  { coin, maxFee = Number.POSITIVE_INFINITY }: { coin: NameCoin; maxFee?: number },
): void {
  if (fee <= maxFee) return
  throw new MiningError(
    'OVER_BUDGET',
    `moving ${coin.name} needs a fee of ${fee} satoshis, and ${maxFee} are allowed`,
  )
}
