import { workerParent } from '../../client/workers.js'
import { NonceScanner } from './nonce-scanner.js'
import type { WorkerMessage, WorkerTask } from './search-workers.js'
import { openKernel } from './simd-kernel.js'

/** The worker of a search, in Node and in browsers: it reports that it is ready, gets its task, and searches. */

/** Milliseconds between two reports. */
const BATCH = 75

const parent = await workerParent()
const send = (message: WorkerMessage): void => parent.post(message)

parent.onMessage((task) => {
  search(task as WorkerTask).catch((cause: unknown) => {
    // Reported, not thrown: a browser does not forward a worker's rejected promises.
    send({ kind: 'failed', message: String(cause) })
  })
})
send({ kind: 'ready' })

/** Never yields: it is terminated from outside, and its messages are delivered nevertheless. */
async function search(task: WorkerTask): Promise<void> {
  const scanner = new NonceScanner({ task, kernel: await openKernel(task.kernel) })
  for (;;) {
    const { hashes, nonce } = scanner.scanFor(BATCH)
    if (nonce !== undefined) {
      send({ kind: 'found', hashes, nonce })
      return
    }
    send({ kind: 'tried', hashes })
  }
}
