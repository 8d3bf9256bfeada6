import { NonceScanner } from './nonce-scanner.js'
import { openKernel } from './open-kernel.js'
import type { WorkerTask } from './search-messages.js'

/** Milliseconds of a slice: as long as a screen shows one picture. */
const SLICE = 16

/**
 * Searches in this thread, in slices between which all else has its turn: for where workers are not to be had.
 *
 * @param search.onHashes Told how many more hashes were tried.
 * @throws the reason of the signal, after the slice in which it came; what `onHashes` throws.
 */
export async function searchInThread(search: {
  task: WorkerTask
  signal?: AbortSignal
  onHashes: (hashes: number) => void
}): Promise<Uint8Array> {
  const { task, signal, onHashes } = search
  const scanner = new NonceScanner({ task, kernel: await openKernel(task.kernel) })
  for (;;) {
    signal?.throwIfAborted()
    const { hashes, nonce } = scanner.scanFor(SLICE)
    onHashes(hashes)
    if (nonce !== undefined) return nonce
    await new Promise((resume) => setTimeout(resume))
  }
}
