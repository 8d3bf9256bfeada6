/** What hashes, and how fast: see docs/search.md. */
export type KernelName = 'simd' | 'plain'

/** Words of a message's block that all nonces of a scan have in common; the next has the counter. */
export const FIXED_WORDS = 13

/** Counters that a scan may go through: 24 bits, the bytes of the 14th word that are not padding. */
export const COUNTERS = 2 ** 24

/** The longest message that fits one block of SHA-256 with its padding, in bytes. */
export const MESSAGE_SIZE = 55

/**
 * Hashes messages of {@link MESSAGE_SIZE} bytes twice with SHA-256: 52 fixed bytes and a counter of three bytes, the
 * highest first.
 */
export interface NonceKernel {
  readonly name: KernelName
  /**
   * @param search.words The fixed bytes as {@link FIXED_WORDS} numbers of 32 bits, the highest byte first.
   * @param search.difficulty Zero bits that a hash, read byte-reversed, must start with: 1 to 64.
   */
  prepare(search: { words: ArrayLike<number>; difficulty: number }): void
  /**
   * Looks at the counters from `from` up to, and without, `to`, both from 0 to {@link COUNTERS}.
   * @returns the first whose hash meets the difficulty, or `to`.
   */
  scan(from: number, to: number): number
}
