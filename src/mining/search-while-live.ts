import { NodeMovedError } from './mining-error.js'
import { type SearchOptions, type SearchProgress, searchNonce } from './search/search-nonce.js'

/** How often to look whether the node is still live, in milliseconds. */
const WATCH_EVERY = 5_000

/**
 * Searches for a nonce, and gives up as soon as the node is seen to be live no more.
 *
 * @throws NodeMovedError then; the reason of the signal.
 */
export async function searchWhileLive(options: {
  search: Pick<SearchOptions, 'seed' | 'character' | 'difficulty' | 'noncePrefix'>
  isLive(): Promise<boolean>
  workers?: number
  workerUrl?: string | URL
  watchEvery?: number
  signal?: AbortSignal
  onProgress?(progress: SearchProgress): void
}): Promise<{ nonce: Uint8Array; hashes: number }> {
  const { search, isLive, workers, workerUrl, watchEvery = WATCH_EVERY, signal, onProgress } = options
  const moved = new AbortController()
  let looking = false
  const watch = setInterval(async () => {
    if (looking) return
    looking = true
    try {
      if (!(await isLive())) moved.abort(new NodeMovedError('another mint has spent the node'))
    } catch {
      // An index that does not answer now is asked once more before the solution is used, and then it matters.
    } finally {
      looking = false
    }
  }, watchEvery)
  try {
    return await searchNonce({
      ...search,
      signal: signal === undefined ? moved.signal : AbortSignal.any([signal, moved.signal]),
      ...(workers !== undefined && { workers }),
      ...(workerUrl !== undefined && { workerUrl }),
      ...(onProgress && { onProgress }),
    })
  } finally {
    clearInterval(watch)
  }
}
