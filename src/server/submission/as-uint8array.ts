/**
 * The same bytes, not copied, without the ways of a Buffer. `Buffer.slice` gives a view where `Uint8Array.slice`
 * gives a copy, so that a reader which turns a txid about turns it in what it reads, too. The SDK reads that way:
 * bytes from Node's own modules come past here first.
 */
export function asUint8Array(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
