import type { Broadcaster, PrivateKey, Transaction } from '@bsv/sdk'
import { fundWithKey } from '../mining/fund-with-key.js'
import { keyLock } from '../mining/key-lock.js'
import type { MintPayer } from '../mining/mine-name.js'
import { type NameWallet, payWithWallet } from '../mining/pay-with-wallet.js'
import { coinsOf } from './coins.js'
import type { MintFolder } from './mint-folder.js'
import { sendMint } from './send-mint.js'

/**
 * Pays with coins of one key, and with the change of the mints before.
 *
 * @param options.coins Transactions with coins of the key, each with its proof or ancestors.
 * @param options.broadcaster Sends mints to the network before any overlay hears of them; without it, nobody does.
 */
export function keyPayer(options: {
  key: PrivateKey
  coins: readonly Transaction[]
  folder: MintFolder
  feeRate?: number
  broadcaster: Broadcaster | undefined
}): MintPayer {
  const { key, coins, folder, feeRate, broadcaster } = options
  return {
    ownerLock: async () => keyLock(key.toPublicKey()),
    async pay({ plan, source }) {
      const held = coinsOf(key, [...coins, ...(await folder.transactions())])
      const signed = await fundWithKey({
        plan,
        source,
        coins: held,
        key,
        ...(feeRate !== undefined && { feeRate }),
      })
      const { transaction } = signed
      const beef = Uint8Array.from(transaction.toBEEF(true))
      await folder.keep(transaction.id('hex'), beef)
      await sendMint({ transaction, folder, broadcaster })
      return { ...signed, beef }
    },
  }
}

/** Pays with a wallet (BRC-100), as {@link payWithWallet}; what it has sent is kept. */
export function walletPayer({ wallet, folder }: { wallet: NameWallet; folder: MintFolder }): MintPayer {
  const { ownerLock, pay } = payWithWallet(wallet)
  return {
    ownerLock,
    async pay(draft) {
      const paid = await pay(draft)
      await folder.keep(paid.transaction.id('hex'), paid.beef)
      return paid
    },
  }
}
