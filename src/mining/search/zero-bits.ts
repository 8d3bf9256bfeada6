/**
 * The difficulty as masks: bits that must be 0 in the last and in the last but one of the eight words of a hash. Read
 * byte-reversed, a hash starts with the lowest byte of its last word.
 *
 * @param bits 0 to 64.
 */
export function zeroBitMasks(bits: number): { last: number; lastButOne: number } {
  return { last: reversedMask(Math.min(bits, 32)), lastButOne: reversedMask(Math.max(bits - 32, 0)) }
}

/** The highest `bits` of 32, and then the four bytes in reverse order. */
function reversedMask(bits: number): number {
  const mask = bits === 0 ? 0 : -1 << (32 - bits)
  return (mask << 24) | ((mask & 0xff00) << 8) | ((mask >>> 8) & 0xff00) | (mask >>> 24)
}
