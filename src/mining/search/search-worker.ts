import { NonceScanner } from './nonce-scanner.js'
import { type WorkerMessage, type WorkerTask, workerParent } from './search-workers.js'
import { openKernel } from './simd-kernel.js'

/** A worker of a search, in Node and in browsers. It says that it is ready, is told what to search for, and searches. */

/** Milliseconds between two words of how many were tried. */
const BATCH = 75

const parent = await workerParent()
const say = (message: WorkerMessage): void => parent.post(message)

parent.onMessage((task) => {
  search(task as WorkerTask).catch((cause: unknown) => {
    // Said, not thrown: a browser keeps to itself what its workers reject.
    say({ kind: 'failed', message: String(cause) })
  })
})
say({ kind: 'ready' })

/** Never gives way: it is ended from outside, and what it says is heard all the same. */
async function search(task: WorkerTask): Promise<void> {
  const scanner = new NonceScanner({ task, kernel: await openKernel(task.kernel) })
  for (;;) {
    const { hashes, nonce } = scanner.scanFor(BATCH)
    if (nonce !== undefined) {
      say({ kind: 'found', hashes, nonce })
      return
    }
    say({ kind: 'tried', hashes })
  }
}
