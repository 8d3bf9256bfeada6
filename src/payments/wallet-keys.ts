import { PublicKey, PushDrop, UnlockingScript, Utils } from '@bsv/sdk'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import { p2pkhLockOf } from './key.js'

// The keys with which a wallet (BRC-100) locks names, and the form of the bytes that it sends.

export type KeyWallet = Pick<sdk.WalletInterface, 'getPublicKey' | 'createSignature'>

/** The BRC-43 protocol of these keys. At level 0 no user is asked about it; the wallet uses these keys for nothing else. */
const PROTOCOL: [0, string] = [0, 'minetree names']
export const NAME_BASKET = 'minetree names'

/** The key with which a wallet locks a name, for `getPublicKey` and `createSignature`. */
export function nameKey(name: string): { protocolID: [0, string]; keyID: string; counterparty: 'self' } {
  return { protocolID: PROTOCOL, keyID: name, counterparty: 'self' }
}

/** The lock of a name that a wallet holds, unbound. */
export async function walletLock(
  wallet: Pick<sdk.WalletInterface, 'getPublicKey'>,
  name: string,
): Promise<Uint8Array> {
  const { publicKey } = await wallet.getPublicKey(nameKey(name))
  return p2pkhLockOf(PublicKey.fromString(publicKey))
}

/** The length of a compressed public key with its push. */
const KEY_BYTES = 34

/** Unlocks an output with the lock of {@link walletLock}. */
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

/**
 * Bytes from a wallet. JSON APIs send an object from indexes to numbers, which is what `JSON.stringify` makes of a `Uint8Array`.
 */
export type WalletBytes = Uint8Array | readonly number[] | Readonly<Record<number, number>>

export function bytesOf(sent: WalletBytes): Uint8Array {
  return Uint8Array.from(Object.values(sent))
}
