import {
  Beef,
  type LockingScript,
  P2PKH,
  type PrivateKey,
  SatoshisPerKilobyte,
  Transaction,
  UnlockingScript,
} from '@bsv/sdk'
import { randomTxid, singleTransactionPath } from '../mining/fake-funding.js'
import { type Coin, DEFAULT_FEE_RATE } from '../mining/fund-with-key.js'
import { sendWithWallet, WalletSendError } from '../mining/fund-with-wallet.js'
import { MiningError } from '../mining/mining-error.js'
import { feeOf, type MintWallet, signWithWallet } from '../mining/sign-with-wallet.js'
import { type AdvertisementProtocol, advertisementUnlock } from '../server/discovery/advertisement.js'
import type { SendOutcome } from './mint-services.js'

/** The value of a token, in satoshis. */
const TOKEN_VALUE = 1
/** A DER signature with its push. */
const UNLOCKING_BYTES = 74

/** A token on the chain. */
export interface Token extends Coin {
  protocol: AdvertisementProtocol
}

/** What a transaction is to publish and to revoke. */
export interface AdvertisementDraft {
  /** The key of the host. */
  key: PrivateKey
  /** The tokens to create, in the order of the first outputs. */
  locks: LockingScript[]
  /** The tokens to spend, in the order of the first inputs. */
  revoked: Token[]
  /** The highest fee, in satoshis. */
  maxFee: number
}

/** Who pays for advertisements, and sends them. */
export interface AdvertisementPayer {
  /**
   * Makes the transaction and signs it; sends nothing.
   *
   * @throws MiningError `NO_FUNDS`, `OVER_BUDGET`, `BAD_WALLET`.
   */
  pay(draft: AdvertisementDraft, keep: (transaction: Transaction) => Promise<void>): Promise<void>
  /** Sends it to the network, any number of times; absent where there is no network. */
  send?: ((transaction: Transaction) => Promise<SendOutcome>) | undefined
}

/** Pays with coins of one key; the change goes back to it. */
export function payFromKey(options: {
  payer: PrivateKey
  coins: () => Promise<Coin[]>
  /** In satoshis per 1,000 bytes. */
  feeRate?: number | undefined
  send: AdvertisementPayer['send']
}): AdvertisementPayer {
  const { payer, coins, feeRate = DEFAULT_FEE_RATE, send } = options
  return {
    send,
    async pay(draft, keep) {
      const transaction = startTransaction(draft)
      const change = { lockingScript: new P2PKH().lock(payer.toAddress()), satoshis: 0 }
      transaction.addOutput(change)
      const model = new SatoshisPerKilobyte(feeRate)
      const satoshisOf = ({ transaction, vout }: Coin): number => transaction.outputs[vout]?.satoshis ?? 0
      // Those of 1 satoshi may be ordinals.
      const usable = (await coins())
        .filter((coin) => satoshisOf(coin) > 1)
        .sort((a, b) => satoshisOf(b) - satoshisOf(a))
      const needed = async (): Promise<number> =>
        (await model.computeFee(transaction)) + TOKEN_VALUE * (draft.locks.length - draft.revoked.length)
      let held = 0
      for (const coin of usable) {
        if (held - (await needed()) > 1) break
        transaction.addInput({
          sourceTransaction: coin.transaction,
          sourceOutputIndex: coin.vout,
          unlockingScriptTemplate: new P2PKH().unlock(payer),
        })
        held += satoshisOf(coin)
      }
      const left = held - (await needed())
      if (left <= 0)
        throw new MiningError(
          'NO_FUNDS',
          `${held} satoshis do not pay for the advertisements: add coins with at least ${1 - left} more`,
        )
      change.satoshis = left
      requireFee(transaction, draft)
      await transaction.sign()
      await keep(transaction)
    },
  }
}

/** Pays with a wallet (BRC-100), which signs first, and sends only what was stored. */
export function payFromWallet(wallet: MintWallet): AdvertisementPayer {
  return {
    async send(transaction) {
      const txid = transaction.id('hex')
      try {
        await sendWithWallet(wallet, { txid, description: 'Send the advertisements of this host' })
        return { kind: 'accepted', why: 'the wallet has sent it' }
      } catch (error) {
        if (!(error instanceof WalletSendError)) throw error
        return { kind: error.isFinal ? 'refused' : 'undecided', why: error.message }
      }
    },
    async pay(draft, keep) {
      const { locks, revoked } = draft
      const sources = new Beef()
      for (const { transaction } of revoked) sources.mergeTransaction(transaction)
      await signWithWallet({
        wallet,
        action: {
          description: 'Advertise this overlay host',
          ...(revoked.length > 0 && {
            inputBEEF: sources.toBinary(),
            inputs: revoked.map(({ transaction, vout, protocol }) => ({
              outpoint: `${transaction.id('hex')}.${vout}`,
              inputDescription: `A ${protocol} token that is revoked`,
              unlockingScriptLength: UNLOCKING_BYTES,
            })),
          }),
          outputs: locks.map((lock) => ({
            satoshis: TOKEN_VALUE,
            lockingScript: lock.toHex(),
            outputDescription: 'A token that advertises this host',
          })),
        },
        check: (transaction) => requireDrafted(transaction, draft),
        unlock: (drafted) => unlocked(drafted, draft),
        keep,
      })
    },
  }
}

/** Pays on a local network, where no coin needs to exist. */
export const FAKE_ADVERTISEMENT_PAYER: AdvertisementPayer = {
  async pay(draft, keep) {
    const transaction = startTransaction(draft)
    const coin = new Transaction(1)
    coin.addInput({ sourceTXID: randomTxid(), sourceOutputIndex: 0, unlockingScript: new UnlockingScript() })
    coin.addOutput({ satoshis: 1000, lockingScript: new P2PKH().lock(draft.key.toAddress()) })
    coin.merklePath = singleTransactionPath({ txid: coin.id('hex'), height: 1 })
    transaction.addInput({
      sourceTransaction: coin,
      sourceOutputIndex: 0,
      unlockingScriptTemplate: new P2PKH().unlock(draft.key),
    })
    await transaction.sign()
    await keep(transaction)
  },
}

function startTransaction({ key, locks, revoked }: AdvertisementDraft): Transaction {
  const transaction = new Transaction(1)
  for (const { transaction: sourceTransaction, vout, protocol } of revoked)
    transaction.addInput({
      sourceTransaction,
      sourceOutputIndex: vout,
      unlockingScriptTemplate: advertisementUnlock(key, protocol),
    })
  for (const lockingScript of locks) transaction.addOutput({ lockingScript, satoshis: TOKEN_VALUE })
  return transaction
}

/** The unlocking scripts of the revoked tokens, by input. */
async function unlocked(
  transaction: Transaction,
  { key, revoked }: AdvertisementDraft,
): Promise<Record<number, { unlockingScript: string }>> {
  const spends: Record<number, { unlockingScript: string }> = {}
  for (const token of revoked) {
    const index = inputOf(transaction, token)
    const input = transaction.inputs[index]
    if (input !== undefined) input.sourceTransaction = token.transaction
    const script = await advertisementUnlock(key, token.protocol).sign(transaction, index)
    spends[index] = { unlockingScript: script.toHex() }
  }
  return spends
}

function inputOf(transaction: Transaction, { transaction: source, vout }: Token): number {
  const txid = source.id('hex')
  return transaction.inputs.findIndex(
    (input) =>
      (input.sourceTXID ?? input.sourceTransaction?.id('hex')) === txid && input.sourceOutputIndex === vout,
  )
}

/** @throws MiningError `BAD_WALLET` if a wallet made another transaction than requested; `OVER_BUDGET`. */
function requireDrafted(transaction: Transaction, draft: AdvertisementDraft): void {
  for (const [vout, lock] of draft.locks.entries()) {
    const output = transaction.outputs[vout]
    if (output?.satoshis !== TOKEN_VALUE || output.lockingScript.toHex() !== lock.toHex())
      throw new MiningError('BAD_WALLET', `the wallet changed output ${vout}`)
  }
  if (draft.revoked.some((token) => inputOf(transaction, token) === -1))
    throw new MiningError('BAD_WALLET', 'the wallet left out a token that is to be revoked')
  requireFee(transaction, draft)
}

function requireFee(transaction: Transaction, { maxFee }: AdvertisementDraft): void {
  const fee = feeOf(transaction)
  if (fee <= maxFee) return
  throw new MiningError(
    'OVER_BUDGET',
    `the advertisements need a fee of ${fee} satoshis, and ${maxFee} are allowed`,
  )
}
