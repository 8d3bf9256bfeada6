import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'

type Kind = 'mint' | 'move'

/** A signed transaction that this server has not confirmed. */
export interface SavedPayment {
  name: string
  txid: string
  beef: Uint8Array
}

const keyOf = (kind: Kind, txid: string): string => `minetree ${kind} ${txid}`

/**
 * Saves a paid transaction in the browser before the wallet sends it, so that closing the page does not lose it.
 *
 * @throws DOMException if the browser has no room for it.
 */
export function savePayment(kind: Kind, { name, txid, beef }: SavedPayment): void {
  localStorage.setItem(keyOf(kind, txid), JSON.stringify({ name, beef: toHex(beef) }))
}

export function forgetPayment(kind: Kind, txid: string): void {
  localStorage.removeItem(keyOf(kind, txid))
}

/** All saved payments of a kind; other data under such a key is ignored. */
export function savedPayments(kind: Kind): SavedPayment[] {
  const prefix = keyOf(kind, '')
  return Object.entries(localStorage).flatMap(([key, value]) => {
    if (!key.startsWith(prefix)) return []
    try {
      const { name, beef } = JSON.parse(String(value)) as { name: unknown; beef: unknown }
      return [{ name: String(name), txid: key.slice(prefix.length), beef: fromHex(String(beef)) }]
    } catch {
      // Written by something else on this origin.
      return []
    }
  })
}
