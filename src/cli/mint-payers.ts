import {
  type Broadcaster,
  P2PKH,
  type PrivateKey,
  PublicKey,
  type Transaction,
  type WalletInterface,
} from '@bsv/sdk'
import { fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import { fundWithKey } from '../mining/fund-with-key.js'
import { fundWithWallet, type MintWallet } from '../mining/fund-with-wallet.js'
import type { PaidMint } from '../mining/mine-name.js'
import type { MintPlan } from '../mining/mint-plan.js'
import { coinsOf } from './coins.js'
import type { MintFolder } from './mint-folder.js'
import { sendMint } from './send-mint.js'

/** Who pays for mints, and whose the names are unless an owner is named. */
export interface MintPayer {
  ownerLock(name: string): Promise<Uint8Array>
  pay(draft: { plan: MintPlan; source: Transaction }): Promise<PaidMint>
}

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
    ownerLock: async () => fromHex(new P2PKH().lock(key.toAddress()).toHex()),
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

/** BRC-43: what keys of names are derived for. Of level 0, for the wallet is asked to use them for nothing else. */
const PROTOCOL: [0, string] = [0, 'minetree names']
const BASKET = 'minetree names'

/** Pays with a wallet (BRC-100), which sends the mint to the network, and keeps the name in a basket of its own. */
export function walletPayer({
  wallet,
  folder,
}: {
  wallet: MintWallet & Pick<WalletInterface, 'getPublicKey'>
  folder: MintFolder
}): MintPayer {
  const keyOf = (keyID: string) => ({ protocolID: PROTOCOL, keyID, counterparty: 'self' as const })
  const ownLock = async (name: string): Promise<Uint8Array> => {
    const { publicKey } = await wallet.getPublicKey(keyOf(name))
    return fromHex(new P2PKH().lock(PublicKey.fromString(publicKey).toAddress()).toHex())
  }
  return {
    ownerLock: ownLock,
    async pay({ plan, source }) {
      const name = decodeMineNode(plan.node.lockingScript).domain + plan.character
      const own = toHex(await ownLock(name)) === toHex(plan.ownerLock)
      const basket = { name: BASKET, customInstructions: JSON.stringify(keyOf(name)) }
      const signed = await fundWithWallet({ plan, source, wallet, ...(own && { basket }) })
      const beef = Uint8Array.from(signed.transaction.toBEEF(true))
      await folder.keep(signed.transaction.id('hex'), beef)
      return { ...signed, beef }
    },
  }
}
