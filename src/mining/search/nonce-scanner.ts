import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { COUNTERS, FIXED_WORDS, MESSAGE_SIZE, type NonceKernel } from './plain-kernel.js'

export interface SearchTask {
  /** 32 bytes, or empty. */
  seed: Uint8Array
  character: string
  /** Zero bits, 1 to 64. */
  difficulty: number
  /** The start of every nonce: 0 to {@link MAX_PREFIX} bytes. */
  noncePrefix: Uint8Array
}

/** The longest prefix of a nonce, in bytes. After a seed it leaves 11 random bytes, so that no two ranges are ever the same. */
export const MAX_PREFIX = 8

/** Nonces between two readings of the clock: less than a millisecond with the fast kernel, about ten with the plain one. */
const STEP = 2 ** 12

const FIXED_SIZE = 4 * FIXED_WORDS

/**
 * Tries nonces, one range after another. A range is all values of the counter; the other bytes of its nonces, apart from the
 * prefix, are random, so no two workers, miners or restarts do the same work.
 *
 * A nonce, with prefix and counter, fills the message up to {@link MESSAGE_SIZE} bytes: it has 22 bytes after a seed, 54 without
 * one.
 */
export class NonceScanner {
  readonly #task: SearchTask
  readonly #kernel: NonceKernel
  readonly #random: (bytes: Uint8Array<ArrayBuffer>) => void
  /** The message before the counter. */
  #fixed = new Uint8Array()
  #counter = COUNTERS

  /** @param scanner.random Fills an array with random bytes. */
  constructor(scanner: {
    task: SearchTask
    kernel: NonceKernel
    random?: (bytes: Uint8Array<ArrayBuffer>) => void
  }) {
    this.#task = scanner.task
    this.#kernel = scanner.kernel
    this.#random = scanner.random ?? ((bytes) => crypto.getRandomValues(bytes))
  }

  /** Tries at most `count` further nonces, and at most as many as are left in the range. */
  scan(count: number): { hashes: number; nonce?: Uint8Array } {
    if (this.#counter === COUNTERS) this.#startRange()
    const from = this.#counter
    const to = Math.min(from + count, COUNTERS)
    const found = this.#kernel.scan(from, to)
    if (found === to) {
      this.#counter = to
      return { hashes: to - from }
    }
    this.#counter = found + 1
    return { hashes: found + 1 - from, nonce: this.#nonceOf(found) }
  }

  /** Tries nonces until one is found, or the time is over. */
  scanFor(milliseconds: number): { hashes: number; nonce?: Uint8Array } {
    const end = monotonic() + milliseconds
    let hashes = 0
    do {
      const step = this.scan(STEP)
      hashes += step.hashes
      if (step.nonce !== undefined) return { hashes, nonce: step.nonce }
    } while (monotonic() < end)
    return { hashes }
  }

  #startRange(): void {
    const { seed, character, noncePrefix, difficulty } = this.#task
    const start = concatBytes(seed, utf8(character), noncePrefix)
    const drawn = new Uint8Array(FIXED_SIZE - start.length)
    this.#random(drawn)
    this.#fixed = Uint8Array.from([...start, ...drawn])
    const view = new DataView(this.#fixed.buffer)
    const words = Array.from({ length: FIXED_WORDS }, (_, index) => view.getUint32(4 * index))
    this.#kernel.prepare({ words, difficulty })
    this.#counter = 0
  }

  #nonceOf(counter: number): Uint8Array {
    const message = new Uint8Array(MESSAGE_SIZE)
    message.set(this.#fixed)
    message.set([counter >>> 16, counter >>> 8, counter], FIXED_SIZE)
    return message.subarray(this.#task.seed.length + this.#task.character.length)
  }
}
