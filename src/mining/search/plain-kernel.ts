import { FIXED_WORDS, MESSAGE_SIZE, type NonceKernel } from './nonce-kernel.js'
import { INITIAL_STATE, ROUND_CONSTANTS } from './sha256-constants.js'
import { zeroBitMasks } from './zero-bits.js'

const K = Int32Array.from(ROUND_CONSTANTS)
const START = Int32Array.from(INITIAL_STATE)
/** The bit that every message is followed by. */
const PADDING = 0x80000000
const DIGEST_SIZE = 32

/**
 * The kernel in plain JavaScript: for where WebAssembly is not to be had, and to check what the other one found.
 *
 * SHA-256 is written out here because a worker is to load a few kilobytes: that of the SDK comes with a bundle of half a
 * megabyte, and takes the message as bytes each time.
 */
export class PlainKernel implements NonceKernel {
  readonly name = 'plain'
  /** The schedule of the message, and that of its hash. */
  readonly #message = new Int32Array(64)
  readonly #digest = new Int32Array(64)
  readonly #hash = new Int32Array(8)
  /** The state after the rounds whose words are fixed. */
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
    const { last, lastButOne } = this.#masks
    return ((this.#hash[7] ?? 0) & last) === 0 && ((this.#hash[6] ?? 0) & lastButOne) === 0
  }
}

/** Works out words 16 to 63 of a schedule (FIPS 180-4, 6.2.2, step 1). */
function extend(words: Int32Array): void {
  for (let t = 16; t < 64; t++) {
    const w2 = words[t - 2] ?? 0
    const w15 = words[t - 15] ?? 0
    const sigma1 = rotr(w2, 17) ^ rotr(w2, 19) ^ (w2 >>> 10)
    const sigma0 = rotr(w15, 7) ^ rotr(w15, 18) ^ (w15 >>> 3)
    words[t] = (sigma1 + (words[t - 7] ?? 0) + sigma0 + (words[t - 16] ?? 0)) | 0
  }
}

/** Takes the first eight numbers of `state` through some of the rounds (FIPS 180-4, 6.2.2, step 3). */
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

/** Ends a compression (FIPS 180-4, 6.2.2, step 4). */
function addStart(state: Int32Array): void {
  for (let i = 0; i < 8; i++) state[i] = (state[i] ?? 0) + (START[i] ?? 0)
}

function rotr(x: number, count: number): number {
  return (x >>> count) | (x << (32 - count))
}
