import type { KernelName, NonceKernel } from './nonce-kernel.js'
import { PlainKernel } from './plain-kernel.js'
import { SearchError } from './search-error.js'
import { SimdKernel } from './simd-kernel.js'

/**
 * What hosts throw that cannot or may not run the kernel: no WebAssembly at all, none with SIMD, or a content security
 * policy against it (Safari has its own name for that).
 */
const NOT_HERE = ['ReferenceError', 'CompileError', 'EvalError']

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
    if (!(cause instanceof Error) || !NOT_HERE.includes(cause.name)) throw cause
    if (name === 'simd') throw new SearchError('UNAVAILABLE', 'no WebAssembly with SIMD here', { cause })
    return new PlainKernel()
  }
}
