/**
 * A CompactSize number, 1, 3, 5 or 9 bytes, no more than it needs: what {@link ByteCursor.varint} reads.
 *
 * @param value A whole number from 0 to 2^53 - 1.
 */
export function encodeVarint(value: number): Uint8Array {
  if (value < 0xfd) return Uint8Array.of(value)
  const [mark, length] = value < 0x1_0000 ? [0xfd, 2] : value < 0x1_0000_0000 ? [0xfe, 4] : [0xff, 8]
  const bytes = new Uint8Array(1 + length)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, mark)
  if (length === 2) view.setUint16(1, value, true)
  else if (length === 4) view.setUint32(1, value, true)
  else view.setBigUint64(1, BigInt(value), true)
  return bytes
}
