import { ROUND_CONSTANTS } from '../../client/sha256-rounds.js'
import { LANES, MEMORY, writeKernel } from './kernel/write-kernel.js'
import { type KernelName, type NonceKernel, PlainKernel, zeroBitMasks } from './plain-kernel.js'
import { SearchError } from './search-error.js'

/**
 * The fastest kernel that is available.
 * @param name The only acceptable kernel.
 * @throws SearchError `UNAVAILABLE` if that kernel is not available.
 */
export async function openKernel(name?: KernelName): Promise<NonceKernel> {
  if (name === 'plain') return new PlainKernel()
  try {
    return await SimdKernel.open()
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause
    if (name === 'simd')
      throw new SearchError('UNAVAILABLE', 'WebAssembly with SIMD is not available here', { cause })
    return new PlainKernel()
  }
}

/**
 * Whether the error says that a host has no WebAssembly, no SIMD, or a content security policy against it, for which Safari has
 * its own error. Compared by name, since each realm has its own error classes.
 */
function isUnavailable(cause: unknown): boolean {
  const { name } = cause as Error
  return ['ReferenceError', 'CompileError', 'EvalError'].includes(name)
}

/** The part of the standard object that is used here; the types of TypeScript and Node do not include it. */
declare const WebAssembly: {
  instantiate(bytes: Uint8Array): Promise<{ instance: { exports: object } }>
}

interface Exports {
  memory: { buffer: ArrayBuffer }
  scan(counter: number, end: number): number
}

/** The kernel in WebAssembly: four nonces at once. */
class SimdKernel implements NonceKernel {
  readonly name = 'simd'
  readonly #exports: Exports
  readonly #memory: Int32Array
  /** Finds which of four candidates is the nonce, and checks the bits that the kernel ignores. */
  readonly #check = new PlainKernel()

  private constructor(exports: Exports) {
    this.#exports = exports
    this.#memory = new Int32Array(exports.memory.buffer)
    this.#setAll(MEMORY.constants, ROUND_CONSTANTS)
  }

  /** @throws the host's error if it has no WebAssembly, no SIMD, or a page's policy forbids it. */
  static async open(): Promise<SimdKernel> {
    const { instance } = await WebAssembly.instantiate(writeKernel())
    return new SimdKernel(instance.exports as Exports)
  }

  prepare(search: { words: ArrayLike<number>; difficulty: number }): void {
    this.#check.prepare(search)
    const { message, digest, fixedState } = this.#check
    this.#setAll(MEMORY.first, message.subarray(0, 16))
    this.#setAll(MEMORY.second, digest.subarray(0, 16))
    this.#setAll(MEMORY.fixedState, fixedState)
    this.#setAll(MEMORY.mask, [zeroBitMasks(search.difficulty).last])
  }

  /** Sets consecutive vectors, each to four times the same number. */
  #setAll(first: number, values: ArrayLike<number>): void {
    for (const [index, value] of Array.from(values).entries())
      this.#memory.fill(value, LANES * (first + index), LANES * (first + index + 1))
  }

  scan(from: number, to: number): number {
    let group = from - (from % LANES)
    const end = Math.ceil(to / LANES) * LANES
    while (group < end) {
      group = this.#exports.scan(group, end)
      if (group === end) break
      const last = Math.min(group + LANES, to)
      const found = this.#check.scan(Math.max(group, from), last)
      if (found < last) return found
      group += LANES
    }
    return to
  }
}
