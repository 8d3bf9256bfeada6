/** Reads chain formats from front to back. Returns views, not copies. */
export class ByteCursor {
  at = 0
  private readonly view: DataView

  /** @param fail Makes the error to throw if the bytes end early or are invalid. */
  constructor(
    readonly bytes: Uint8Array,
    private readonly fail: (message: string) => Error,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get atEnd(): boolean {
    return this.at === this.bytes.length
  }

  take(length: number): Uint8Array {
    this.skip(length)
    return this.bytes.subarray(this.at - length, this.at)
  }

  /** As {@link take}, but returns nothing. */
  skip(length: number): void {
    if (this.at + length > this.bytes.length) throw this.fail('unexpected end of bytes')
    this.at += length
  }

  u8(): number {
    this.skip(1)
    return this.view.getUint8(this.at - 1)
  }

  u16(): number {
    this.skip(2)
    return this.view.getUint16(this.at - 2, true)
  }

  u32(): number {
    this.skip(4)
    return this.view.getUint32(this.at - 4, true)
  }

  u64(): number {
    this.skip(8)
    const high = this.view.getUint32(this.at - 4, true)
    if (high >= 2 ** 21) throw this.fail('a number is 2^53 or more')
    return high * 2 ** 32 + this.view.getUint32(this.at - 8, true)
  }

  /** The count of what follows, at most `most`. */
  count(what: string, most: number): number {
    const count = this.varint()
    if (count > most) throw this.fail(`${count} ${what} are more than the ${most} allowed`)
    return count
  }

  /**
   * A CompactSize number: 1, 3, 5 or 9 bytes, no more than it needs. Nodes accept no other form, and the SDK rewrites others
   * before it hashes, so that the same bytes would have two txids.
   */
  varint(): number {
    const first = this.u8()
    if (first < 0xfd) return first
    const value = first === 0xfd ? this.u16() : first === 0xfe ? this.u32() : this.u64()
    const least = first === 0xfd ? 0xfd : first === 0xfe ? 0x1_0000 : 0x1_0000_0000
    if (value < least) throw this.fail(`the count ${value} is not minimally encoded`)
    return value
  }
}

/**
 * A CompactSize number, 1, 3, 5 or 9 bytes, no more than it needs: what {@link ByteCursor.varint} reads.
 *
 * @param value A whole number from 0 to 2^53 - 1.
 */
export function encodeVarint(value: number): Uint8Array {
  if (value < 0xfd) return Uint8Array.of(value)
  if (value <= 0xffff) return Uint8Array.of(0xfd, ...encodeNumber(value, 2))
  if (value <= 0xffff_ffff) return Uint8Array.of(0xfe, ...encodeNumber(value, 4))
  return Uint8Array.of(0xff, ...encodeNumber(value, 8))
}

/** A whole number from 0 to 2^53 - 1, little-endian. */
export function encodeNumber(value: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let left = value
  for (let at = 0; at < length; at++) {
    bytes[at] = left % 256
    left = Math.floor(left / 256)
  }
  return bytes
}
