import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { searchInWorkers, workerHost } from '../../mining/search/search-workers.js'
import { duration, rate } from '../mine-page/figures.js'

/** How long the search of the mine page is measured, in milliseconds. */
const MEASURED = 1000
const KEPT = 'hashes-per-second'

/** Says how long the name of the page takes on this machine, in place of what a machine is assumed to do. */
export async function showMiningTime(): Promise<void> {
  const place = document.querySelector<HTMLElement>('[data-hashes]')
  if (place === null) return
  const known = Number(sessionStorage.getItem(KEPT))
  const hashesPerSecond = known > 0 ? known : await measured()
  if (hashesPerSecond === undefined) return
  sessionStorage.setItem(KEPT, String(hashesPerSecond))
  const time = duration(Number(place.dataset.hashes) / hashesPerSecond)
  place.textContent = `${time} on this machine, at ${rate(hashesPerSecond)}`
}

/** Searches for what is not found, for a moment; undefined if the search does not run here. */
async function measured(): Promise<number | undefined> {
  const host = await workerHost()
  if (host === undefined) return undefined
  const over = new AbortController()
  let [hashes, elapsed] = [0, 0]
  let start: number | undefined
  const onHashes = (more: number): void => {
    start ??= monotonic()
    elapsed = monotonic() - start
    // The first ones were tried before.
    if (elapsed > 0) hashes += more
    if (elapsed > MEASURED) over.abort()
  }
  const task = { seed: new Uint8Array(32), character: 'a', difficulty: 64, noncePrefix: new Uint8Array() }
  const url = new URL('../mine/search-worker.js', import.meta.url)
  try {
    await searchInWorkers({ task, host, workers: host.cores, url, signal: over.signal, onHashes })
  } catch {
    if (!over.signal.aborted) return undefined
  }
  return (hashes / elapsed) * 1000
}
