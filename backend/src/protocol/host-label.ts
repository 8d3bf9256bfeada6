import { fromHex, toHex } from './bytes.js'
import { decodeOutpoint, encodeOutpoint, type Outpoint } from './outpoint.js'

/** Digits of 36 bytes in base 36: 36^55 < 2^288 < 36^56. A label of a host name holds 63 characters (RFC 1035 2.3.4). */
const LABEL_LENGTH = 56
const BASE = 36n
const BYTES = 36
const LABEL = new RegExp(`^[0-9a-z]{${LABEL_LENGTH}}$`)

/**
 * An outpoint as a label of a host name: its 36 bytes as transactions carry them (txid in internal order, vout little-endian),
 * read as one big-endian number, in base 36 with lower-case digits and leading zeros. So each outpoint has one label.
 */
export function outpointLabel(outpoint: Outpoint): string {
  return BigInt(`0x${toHex(encodeOutpoint(outpoint))}`)
    .toString(36)
    .padStart(LABEL_LENGTH, '0')
}

/** The outpoint of a label in lower case; undefined if the label is none of {@link outpointLabel}. */
export function outpointOfLabel(label: string): Outpoint | undefined {
  if (!LABEL.test(label)) return undefined
  let number = 0n
  for (const digit of label) number = number * BASE + BigInt(Number.parseInt(digit, 36))
  const hex = number.toString(16).padStart(2 * BYTES, '0')
  return hex.length > 2 * BYTES ? undefined : decodeOutpoint(fromHex(hex))
}

/** Whether a name can be a label that browsers and resolvers accept and show as it is (RFC 5891 4.2.3.1, RFC 1035 2.3.1). */
export function isHostLabel(name: string): boolean {
  return name.length <= 63 && !name.startsWith('-') && !name.endsWith('-') && !name.startsWith('xn--')
}
