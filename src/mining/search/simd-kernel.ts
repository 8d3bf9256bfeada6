import { LANES, MEMORY, writeKernel } from './kernel/write-kernel.js'
import { type KernelName, type NonceKernel, PlainKernel, zeroBitMasks } from './plain-kernel.js'
import { SearchError } from './search-error.js'

/**
 * The fastest kernel that can be had here.
 * @param name Only this one.
 * @throws SearchError (`UNAVAILABLE`) where the one asked for is not to be had.
 */
export async function openKernel(name?: KernelName): Promise<NonceKernel> {
  if (name === 'plain') return new PlainKernel()
  try {
    return await SimdKernel.open()
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause
    if (name === 'simd') throw new SearchError('UNAVAILABLE', 'no WebAssembly with SIMD here', { cause })
    return new PlainKernel()
  }
}

/**
 * Whether a host has no WebAssembly at all, none with SIMD, or a content security policy against it, for which Safari
 * has a name of its own. By name, since each realm has its own classes of errors.
 */
function isUnavailable(cause: unknown): boolean {
  const { name } = cause as Error
  return ['ReferenceError', 'CompileError', 'EvalError'].includes(name)
}

/** The part of the standard object that is used here; neither the language's types nor Node's have it. */
declare const WebAssembly: {
  instantiate(bytes: Uint8Array): Promise<{ instance: { exports: object } }>
}

interface Exports {
  memory: { buffer: ArrayBuffer }
  prepare(): void
  scan(counter: number, end: number): number
}

/** The kernel in WebAssembly: four nonces at once. */
export class SimdKernel implements NonceKernel {
  readonly name = 'simd'
  readonly #exports: Exports
  readonly #memory: DataView
  /** Tells which of four it was, and whether the bits do that the kernel does not look at. */
  readonly #check = new PlainKernel()

  private constructor(exports: Exports) {
    this.#exports = exports
    this.#memory = new DataView(exports.memory.buffer)
  }

  /** @throws whatever the host throws where it has no WebAssembly, no SIMD, or a page's policy forbids both. */
  static async open(): Promise<SimdKernel> {
    const { instance } = await WebAssembly.instantiate(writeKernel())
    return new SimdKernel(instance.exports as Exports)
  }

  prepare(search: { words: ArrayLike<number>; difficulty: number }): void {
    for (const [index, word] of Array.from(search.words).entries()) {
      this.#memory.setInt32(MEMORY.fixedWords + 4 * index, word, true)
    }
    this.#memory.setInt32(MEMORY.mask, zeroBitMasks(search.difficulty).last, true)
    this.#exports.prepare()
    this.#check.prepare(search)
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
