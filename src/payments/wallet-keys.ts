import { PublicKey, PushDrop, UnlockingScript, Utils } from '@bsv/sdk'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import { p2pkhLockOf } from './key.js'

// The keys that a wallet (BRC-100) locks names with, and how it sends bytes.

export type KeyWallet = Pick<sdk.WalletInterface, 'getPublicKey' | 'createSignature'>

/** The BRC-43 protocol of these keys; level 0, because the wallet uses them for nothing else: no user is asked about it. */
const PROTOCOL: [0, string] = [0, 'minetree names']
export const NAME_BASKET = 'minetree names'

/** The key that a wallet locks a name with, for `getPublicKey` and `createSignature`. */
export function nameKey(name: string): { protocolID: [0, string]; keyID: string; counterparty: 'self' } {
  return { protocolID: PROTOCOL, keyID: name, counterparty: 'self' }
}

/** The lock that keeps a name with a wallet, unbound. */
export async function walletLock(
  wallet: Pick<sdk.WalletInterface, 'getPublicKey'>,
  name: string,
): Promise<Uint8Array> {
  const { publicKey } = await wallet.getPublicKey(nameKey(name))
  return p2pkhLockOf(PublicKey.fromString(publicKey))
}

/** A compressed public key with its push. */
const KEY_BYTES = 34

/** Unlocks what {@link walletLock} has locked. */
export async function walletUnlock(wallet: KeyWallet, name: string): Promise<sdk.ScriptTemplateUnlock> {
  const key = nameKey(name)
  const { publicKey } = await wallet.getPublicKey(key)
  const signature = new PushDrop(wallet as sdk.WalletInterface).unlock(
    key.protocolID,
    key.keyID,
    key.counterparty,
  )
  const keyPush = { op: KEY_BYTES - 1, data: Utils.toArray(publicKey, 'hex') }
  return {
    estimateLength: async () => (await signature.estimateLength()) + KEY_BYTES,
    async sign(transaction, input) {
      const { chunks } = await signature.sign(transaction, input)
      return new UnlockingScript([...chunks, keyPush])
    },
  }
}

/** Of a JSON API: an object from places to numbers is what `JSON.stringify` makes of bytes. */
export type WalletBytes = Uint8Array | readonly number[] | Readonly<Record<number, number>>

export function bytesOf(sent: WalletBytes): Uint8Array {
  return Uint8Array.from(Object.values(sent))
}
