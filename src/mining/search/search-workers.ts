import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import type { RunningWorker, WorkerHost } from '../../client/workers.js'
import type { SearchTask } from './nonce-scanner.js'
import type { KernelName } from './plain-kernel.js'
import { SearchError } from './search-error.js'

/** The task that a worker gets once it is ready. */
export interface WorkerTask extends SearchTask {
  /** By default, the fastest available. */
  kernel?: KernelName
}

/** Messages of a worker. `hashes` counts those since its last message. */
export type WorkerMessage =
  | { kind: 'ready' }
  | { kind: 'tried'; hashes: number }
  | { kind: 'found'; hashes: number; nonce: Uint8Array }
  | { kind: 'failed'; message: string }

/**
 * Searches in several workers, until one of them has found a nonce. All are terminated when the promise settles.
 *
 * @param search.onHashes Called with the number of further hashes.
 * @throws the reason of the signal; SearchError `WORKER_FAILED` as soon as one worker fails; what `onHashes` throws.
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
    const end = (complete: () => void): void => {
      if (isOver) return
      isOver = true
      signal?.removeEventListener('abort', abort)
      for (const worker of running) worker.terminate()
      complete()
    }
    const abort = (): void => end(() => reject(signal?.reason))
    const fail = (cause: unknown): void =>
      end(() => reject(new SearchError('WORKER_FAILED', `a worker failed: ${messageOf(cause)}`, { cause })))

    const onWorkerMessage = (worker: RunningWorker, message: WorkerMessage): void => {
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
            // Messages sent before a worker is terminated still arrive.
            if (isOver) return
            try {
              onWorkerMessage(worker, message as WorkerMessage)
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
