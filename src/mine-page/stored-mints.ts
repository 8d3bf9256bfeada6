import { fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import type { PaidMint } from '../mining/mine-name.js'

/** A mint that was signed, and that this server was not seen to have. */
export interface StoredMint {
  name: string
  txid: string
  beef: Uint8Array
}

const PREFIX = 'minetree mint '

/**
 * Stores a mint in the browser before the wallet sends it, so that closing the page loses none.
 *
 * @throws DOMException where the browser has no room for it.
 */
export function storeMint({ mint, transaction, beef }: PaidMint): void {
  const stored = JSON.stringify({ name: mint.name, beef: toHex(beef) })
  localStorage.setItem(PREFIX + transaction.id('hex'), stored)
}

export function forgetMint(txid: string): void {
  localStorage.removeItem(PREFIX + txid)
}

/** All that are stored; whatever else stands under such a name is passed over. */
export function storedMints(): StoredMint[] {
  return Object.entries(localStorage).flatMap(([key, value]) => {
    if (!key.startsWith(PREFIX)) return []
    try {
      const { name, beef } = JSON.parse(String(value)) as { name: unknown; beef: unknown }
      return [{ name: String(name), txid: key.slice(PREFIX.length), beef: fromHex(String(beef)) }]
    } catch {
      // Written by something else on this origin.
      return []
    }
  })
}
