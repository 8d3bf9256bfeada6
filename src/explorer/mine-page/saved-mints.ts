import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'

/** A signed mint that this server has not confirmed. */
export interface SavedMint {
  name: string
  txid: string
  beef: Uint8Array
}

const PREFIX = 'minetree mint '

/**
 * Saves a mint in the browser before the wallet sends it, so that closing the page does not lose it.
 *
 * @throws DOMException if the browser has no room for it.
 */
export function saveMint({ name, txid, beef }: SavedMint): void {
  localStorage.setItem(PREFIX + txid, JSON.stringify({ name, beef: toHex(beef) }))
}

export function forgetMint(txid: string): void {
  localStorage.removeItem(PREFIX + txid)
}

/** All saved mints; other data under such a key is ignored. */
export function savedMints(): SavedMint[] {
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
