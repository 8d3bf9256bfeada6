import type { KernelName, NonceKernel } from './nonce-kernel.js'
import { PlainKernel } from './plain-kernel.js'
import { SearchError } from './search-error.js'
import { SimdKernel } from './simd-kernel.js'

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
