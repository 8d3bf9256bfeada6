/** Small operations on bytes that every coder here needs. Hex is for the edges; inside, bytes stay bytes. */

const BYTE_HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Lower-case hex of the bytes. */
export function toHex(bytes: Uint8Array): string {
  // Joined, and not appended one by one: V8 would keep a rope of a kilobyte for each txid.
  const pairs = new Array<string>(bytes.length)
  for (let at = 0; at < bytes.length; at++) pairs[at] = BYTE_HEX[bytes[at] ?? 0] ?? ''
  return pairs.join('')
}

/**
 * Decodes hex in either case.
 * @throws RangeError if the text is not hex of even length.
 */
export function fromHex(hex: string): Uint8Array {
  if (hex.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(hex)) throw new RangeError('must be hex of even length')
  const bytes = new Uint8Array(hex.length / 2)
  for (let i = 0; i < bytes.length; i++) bytes[i] = (digitAt(hex, 2 * i) << 4) | digitAt(hex, 2 * i + 1)
  return bytes
}

/** The value of a hex digit: the letters of both cases differ from the digits, and count from 1, in their last four bits. */
function digitAt(hex: string, at: number): number {
  const code = hex.charCodeAt(at)
  return (code & 15) + (code > 64 ? 9 : 0)
}

/** The text with its percent-escapes decoded once; undefined if one is broken. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    // It throws for broken escapes alone.
    return undefined
  }
}

/** A text as JSON escapes it: `\uXXXX` for each UTF-16 code unit. */
export function unicodeEscaped(text: string): string {
  let escaped = ''
  for (let at = 0; at < text.length; at++)
    escaped += `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`
  return escaped
}

/** The parts one after another. For a handful; a list whose length others choose goes to {@link joinBytes}. */
export function concatBytes(...parts: Uint8Array[]): Uint8Array {
  return joinBytes(parts)
}

/** The parts of a list of any length one after another. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** Whether both hold the same bytes. Not in constant time: nothing here is secret. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

/** The order of bytes, as `memcmp` has it. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** The same bytes in reverse order, as between the internal and the displayed order of a txid. */
export function reversed(bytes: Uint8Array): Uint8Array {
  // Not `slice`, which does not copy a Buffer.
  return new Uint8Array(bytes).reverse()
}

/** ASCII text as bytes, and nothing else: for markers, tags and names that are ASCII by rule. */
export function ascii(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i)
  return bytes
}

const utf8Decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const strictUtf8Decoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true })
const utf8Encoder = new TextEncoder()

export function utf8(text: string): Uint8Array {
  return utf8Encoder.encode(text)
}

/** Decodes UTF-8; invalid bytes become U+FFFD. A byte order mark stays. */
export function readUtf8(bytes: Uint8Array): string {
  return utf8Decoder.decode(bytes)
}

/** Decodes UTF-8; undefined if any byte is invalid. */
export function readStrictUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8Decoder.decode(bytes)
  } catch {
    // The only error that the decoder throws.
    return undefined
  }
}

/**
 * The same bytes, not copied, without the methods of a Buffer. `Buffer.slice` returns a view where `Uint8Array.slice` returns a
 * copy, so a reader that reverses a txid in place, as the SDK does, would reverse it in its input, too.
 */
export function asUint8Array(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
