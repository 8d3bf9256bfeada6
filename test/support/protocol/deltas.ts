import { fromHex, joinBytes } from '../../../backend/src/protocol/bytes.js'

/** A window of a delta (RFC 3284 4.2), its parts in hex. */
export interface DeltaWindow {
  /** Indicator, length and position of its segment; none by default. */
  segment?: string
  /** How long it says that its target is. */
  makes: number
  data?: string
  codes?: string
  addresses?: string
  /** The indicator behind the length of the target; 0 by default. */
  compressed?: number
  /** Added to the length that it says to have. */
  longer?: number
}

export function number(value: number): Uint8Array {
  const digits = [value % 128]
  for (let left = Math.floor(value / 128); left > 0; left = Math.floor(left / 128))
    digits.unshift((left % 128) + 128)
  return Uint8Array.from(digits)
}

/** A delta with the plain header. */
export function delta(...windows: DeltaWindow[]): Uint8Array {
  return joinBytes([fromHex('d6c3c40000'), ...windows.map(encoded)])
}

function encoded({ segment = '00', makes, compressed = 0, longer = 0, ...parts }: DeltaWindow): Uint8Array {
  const sections = [parts.data, parts.codes, parts.addresses].map((hex = '') =>
    fromHex(hex.replaceAll(' ', '')),
  )
  const lengths = sections.map(({ length }) => number(length))
  const body = joinBytes([number(makes), Uint8Array.of(compressed), ...lengths, ...sections])
  return joinBytes([fromHex(segment.replaceAll(' ', '')), number(body.length + longer), body])
}
