import { addState, extendSchedule, INITIAL_STATE, runRounds } from '../../client/sha256-rounds.js'

/** The implementations; docs/covenant.md compares their speed. */
export type KernelName = 'simd' | 'plain'

/** Words of a message's block that all nonces of a scan share; the next word holds the counter. */
export const FIXED_WORDS = 13

/** Counter values of a scan: 24 bits, the bytes of the 14th word that are not padding. */
export const COUNTERS = 2 ** 24

/** The longest message that fits one block of SHA-256 with its padding, in bytes. */
export const MESSAGE_SIZE = 55

/**
 * Hashes messages of {@link MESSAGE_SIZE} bytes twice with SHA-256: 52 fixed bytes and a counter of three bytes, most
 * significant first.
 */
export interface NonceKernel {
  readonly name: KernelName
  /**
   * @param search.words The fixed bytes as {@link FIXED_WORDS} big-endian numbers of 32 bits.
   * @param search.difficulty Zero bits with which a hash, read byte-reversed, must start: 1 to 64.
   */
  prepare(search: { words: ArrayLike<number>; difficulty: number }): void
  /**
   * Tries the counters from `from` up to, and excluding, `to`, both from 0 to {@link COUNTERS}.
   * @returns the first whose hash meets the difficulty, or `to`.
   */
  scan(from: number, to: number): number
}

/**
 * The difficulty as masks: bits that must be 0 in the last and the second to last of the eight words of a hash. Read
 * byte-reversed, a hash starts with the lowest byte of its last word.
 *
 * @param bits 0 to 64.
 */
export function zeroBitMasks(bits: number): { last: number; secondToLast: number } {
  return { last: reversedMask(Math.min(bits, 32)), secondToLast: reversedMask(Math.max(bits - 32, 0)) }
}

/** The highest `bits` of 32, with the four bytes in reverse order. */
function reversedMask(bits: number): number {
  const mask = bits === 0 ? 0 : -1 << (32 - bits)
  return (mask << 24) | ((mask & 0xff00) << 8) | ((mask >>> 8) & 0xff00) | (mask >>> 24)
}

const START = Int32Array.from(INITIAL_STATE)
/** The bit that follows every message. */
export const PADDING = 0x80000000
const DIGEST_SIZE = 32

/**
 * The kernel in plain JavaScript: used where WebAssembly is not available, and to check the results of the other one.
 *
 * It has its own SHA-256 to keep a worker at a few kilobytes: the SDK's comes with a bundle of half a megabyte, and takes the
 * message as bytes each time.
 */
export class PlainKernel implements NonceKernel {
  readonly name = 'plain'
  /** The message schedules of the first and the second hash. */
  readonly message = new Int32Array(64)
  readonly digest = new Int32Array(64)
  readonly #hash = new Int32Array(8)
  /** The state after the rounds with fixed words. */
  readonly fixedState = new Int32Array(8)
  #masks = zeroBitMasks(0)

  constructor() {
    this.message[15] = 8 * MESSAGE_SIZE
    this.digest[8] = PADDING
    this.digest[15] = 8 * DIGEST_SIZE
  }

  prepare(search: { words: ArrayLike<number>; difficulty: number }): void {
    this.#masks = zeroBitMasks(search.difficulty)
    for (let t = 0; t < FIXED_WORDS; t++) this.message[t] = search.words[t] ?? 0
    this.fixedState.set(START)
    runRounds({ state: this.fixedState, words: this.message, from: 0, to: FIXED_WORDS })
  }

  scan(from: number, to: number): number {
    for (let counter = from; counter < to; counter++) if (this.#isFound(counter)) return counter
    return to
  }

  #isFound(counter: number): boolean {
    this.message[FIXED_WORDS] = (counter << 8) | (PADDING >>> 24)
    extendSchedule(this.message)
    this.digest.set(this.fixedState)
    runRounds({ state: this.digest, words: this.message, from: FIXED_WORDS, to: 64 })
    addState(this.digest, START)
    extendSchedule(this.digest)
    this.#hash.set(START)
    runRounds({ state: this.#hash, words: this.digest, from: 0, to: 64 })
    addState(this.#hash, START)
    const { last, secondToLast } = this.#masks
    return ((this.#hash[7] ?? 0) & last) === 0 && ((this.#hash[6] ?? 0) & secondToLast) === 0
  }
}
