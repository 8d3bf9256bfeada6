import { SearchError } from './search-error.js'
import type { WorkerMessage, WorkerTask } from './search-messages.js'
import type { RunningWorker, WorkerHost } from './worker-host.js'

/**
 * Searches in several workers, until one of them has found a nonce. All have ended when the promise settles.
 *
 * @param search.onHashes Told how many more hashes were tried.
 * @throws the reason of the signal; SearchError (`WORKER_FAILED`) as soon as one worker fails; what `onHashes` throws.
 */
export function searchInWorkers(search: {
  task: WorkerTask
  host: WorkerHost
  workers: number
  url: URL | string
  signal?: AbortSignal
  onHashes: (hashes: number) => void
}): Promise<Uint8Array> {
  const { task, host, signal, onHashes } = search
  return new Promise((resolve, reject) => {
    const running: RunningWorker[] = []
    let isOver = false
    const end = (settle: () => void): void => {
      if (isOver) return
      isOver = true
      signal?.removeEventListener('abort', abort)
      for (const worker of running) worker.terminate()
      settle()
    }
    const abort = (): void => end(() => reject(signal?.reason))
    const fail = (cause: unknown): void =>
      end(() => reject(new SearchError('WORKER_FAILED', `a worker failed: ${reasonOf(cause)}`, { cause })))

    const hear = (worker: RunningWorker, message: WorkerMessage): void => {
      if (message.kind === 'ready') worker.post(task)
      else if (message.kind === 'failed') fail(message.message)
      else onHashes(message.hashes)
      if (message.kind === 'found') end(() => resolve(message.nonce))
    }

    signal?.addEventListener('abort', abort)
    try {
      for (let count = 0; count < search.workers; count++) {
        const worker = host.start({
          url: search.url,
          onFailure: fail,
          onMessage: (message) => {
            // Messages under way when a worker is ended still come.
            if (isOver) return
            try {
              hear(worker, message as WorkerMessage)
            } catch (cause) {
              end(() => reject(cause))
            }
          },
        })
        running.push(worker)
      }
    } catch (cause) {
      fail(cause)
    }
  })
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
