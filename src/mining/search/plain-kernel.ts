/** The implementations and their speed: see docs/search.md. */
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

/** The initial state of SHA-256: 32 bits of the fractional parts of the square roots of the first 8 primes (FIPS 180-4, 5.3.3). */
export const INITIAL_STATE: readonly number[] = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]

/** The round constants: the same for the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
export const ROUND_CONSTANTS: readonly number[] = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
  0xc67178f2,
]

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

const K = Int32Array.from(ROUND_CONSTANTS)
const START = Int32Array.from(INITIAL_STATE)
/** The bit that follows every message. */
const PADDING = 0x80000000
const DIGEST_SIZE = 32

/**
 * The kernel in plain JavaScript: used where WebAssembly is not available, and to check what the other one finds.
 *
 * SHA-256 is implemented here to keep a worker at a few kilobytes: the SDK's comes with a bundle of half a megabyte, and
 * takes the message as bytes each time.
 */
export class PlainKernel implements NonceKernel {
  readonly name = 'plain'
  /** The message schedules of the first and of the second hash. */
  readonly #message = new Int32Array(64)
  readonly #digest = new Int32Array(64)
  readonly #hash = new Int32Array(8)
  /** The state after the rounds with fixed words. */
  readonly #fixedState = new Int32Array(8)
  #masks = zeroBitMasks(0)

  constructor() {
    this.#message[15] = 8 * MESSAGE_SIZE
    this.#digest[8] = PADDING
    this.#digest[15] = 8 * DIGEST_SIZE
  }

  prepare(search: { words: ArrayLike<number>; difficulty: number }): void {
    this.#masks = zeroBitMasks(search.difficulty)
    for (let t = 0; t < FIXED_WORDS; t++) this.#message[t] = search.words[t] ?? 0
    this.#fixedState.set(START)
    runRounds({ state: this.#fixedState, words: this.#message, from: 0, to: FIXED_WORDS })
  }

  scan(from: number, to: number): number {
    for (let counter = from; counter < to; counter++) if (this.#isFound(counter)) return counter
    return to
  }

  #isFound(counter: number): boolean {
    this.#message[FIXED_WORDS] = (counter << 8) | (PADDING >>> 24)
    extend(this.#message)
    this.#digest.set(this.#fixedState)
    runRounds({ state: this.#digest, words: this.#message, from: FIXED_WORDS, to: 64 })
    addStart(this.#digest)
    extend(this.#digest)
    this.#hash.set(START)
    runRounds({ state: this.#hash, words: this.#digest, from: 0, to: 64 })
    addStart(this.#hash)
    const { last, secondToLast } = this.#masks
    return ((this.#hash[7] ?? 0) & last) === 0 && ((this.#hash[6] ?? 0) & secondToLast) === 0
  }
}

/** Computes words 16 to 63 of a schedule (FIPS 180-4, 6.2.2, step 1). */
function extend(words: Int32Array): void {
  for (let t = 16; t < 64; t++) {
    const w2 = words[t - 2] ?? 0
    const w15 = words[t - 15] ?? 0
    const sigma1 = rotr(w2, 17) ^ rotr(w2, 19) ^ (w2 >>> 10)
    const sigma0 = rotr(w15, 7) ^ rotr(w15, 18) ^ (w15 >>> 3)
    words[t] = (sigma1 + (words[t - 7] ?? 0) + sigma0 + (words[t - 16] ?? 0)) | 0
  }
}

/** Runs some of the rounds on the first eight numbers of `state` (FIPS 180-4, 6.2.2, step 3). */
function runRounds(rounds: { state: Int32Array; words: Int32Array; from: number; to: number }): void {
  const { state, words, from, to } = rounds
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let t = from; t < to; t++) {
    const sum1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)
    const t1 = (h + sum1 + (g ^ (e & (f ^ g))) + (K[t] ?? 0) + (words[t] ?? 0)) | 0
    const sum0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)
    const t2 = (sum0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  state[0] = a
  state[1] = b
  state[2] = c
  state[3] = d
  state[4] = e
  state[5] = f
  state[6] = g
  state[7] = h
}

/** Completes a compression (FIPS 180-4, 6.2.2, step 4). */
function addStart(state: Int32Array): void {
  for (let i = 0; i < 8; i++) state[i] = (state[i] ?? 0) + (START[i] ?? 0)
}

function rotr(x: number, count: number): number {
  return (x >>> count) | (x << (32 - count))
}
