import { PublicKey, type WalletInterface } from '@bsv/sdk'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import { fundWithWallet, type MintWallet } from './fund-with-wallet.js'
import { keyLock } from './key-lock.js'
import type { MintPayer, PaidMint } from './mine-name.js'

/** What of a wallet (BRC-100) takes part where names are to be its own. */
export type NameWallet = MintWallet & Pick<WalletInterface, 'getPublicKey'>

/** BRC-43: what keys of names are derived for. Of level 0, for the wallet is asked to use them for nothing else. */
const PROTOCOL: [0, string] = [0, 'minetree names']
const BASKET = 'minetree names'

/**
 * Pays with a wallet (BRC-100), which sends the mint to the network, and keeps its own names in a basket.
 *
 * @param options.keep Stores a signed mint before the wallet sends it.
 */
export function payWithWallet(
  wallet: NameWallet,
  { keep }: { keep?: (mint: PaidMint) => Promise<void> } = {},
): MintPayer {
  const keyOf = (keyID: string) => ({ protocolID: PROTOCOL, keyID, counterparty: 'self' as const })
  /** By name. The wallet may ask its user each time, so it is asked once. */
  const known = new Map<string, Uint8Array>()
  const ownLock = async (name: string): Promise<Uint8Array> => {
    const before = known.get(name)
    if (before !== undefined) return before
    const { publicKey } = await wallet.getPublicKey(keyOf(name))
    const lock = keyLock(PublicKey.fromString(publicKey))
    known.set(name, lock)
    return lock
  }
  return {
    ownerLock: ownLock,
    async pay({ plan, source, maxFee }) {
      const name = decodeMineNode(plan.node.lockingScript).domain + plan.character
      const own = toHex(await ownLock(name)) === toHex(plan.ownerLock)
      const basket = { name: BASKET, customInstructions: JSON.stringify(keyOf(name)) }
      return await fundWithWallet({
        ...{ plan, source, wallet, maxFee },
        ...(own && { basket }),
        ...(keep && { keep }),
      })
    },
  }
}
