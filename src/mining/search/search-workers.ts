import { messageOf } from '../../../backend/src/protocol/coded-error.js'
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
 * @param search.onHashes Called with how many more hashes were tried.
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
            // Messages that are under way when a worker is terminated still arrive.
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

/** Workers of Node and of browsers, behind one interface. */
export interface WorkerHost {
  /** How many threads can run at once. */
  cores: number
  start(worker: {
    url: URL | string
    onMessage: (message: unknown) => void
    /** The worker could not be loaded, threw, or exited by itself. */
    onFailure: (cause: unknown) => void
  }): RunningWorker
}

export interface RunningWorker {
  post(message: unknown): void
  /** Ends it at once, whatever it is doing. */
  terminate(): void
}

/** The worker's end of the connection. */
export interface WorkerParent {
  post(message: unknown): void
  onMessage(listener: (message: unknown) => void): void
}

/** The part of the web's globals that is used here; the language's types do not include them. */
interface WebWorker {
  onmessage: ((event: { data: unknown }) => void) | null
  onerror: ((event: { message?: string }) => void) | null
  onmessageerror: (() => void) | null
  postMessage(message: unknown): void
  terminate(): void
}
interface WebGlobal {
  Worker?: new (url: URL | string, options: { type: 'module' }) => WebWorker
  navigator?: { hardwareConcurrency?: number }
  onmessage?: unknown
  postMessage?: (message: unknown) => void
}
const web = globalThis as unknown as WebGlobal

const isNode = typeof process === 'object' && process.versions?.node !== undefined

export async function workerHost(): Promise<WorkerHost | undefined> {
  if (isNode) return await nodeHost()
  const { Worker, navigator } = web
  if (Worker === undefined) return undefined
  return {
    cores: navigator?.hardwareConcurrency ?? 1,
    start: ({ url, onMessage, onFailure }) => {
      const worker = new Worker(url, { type: 'module' })
      worker.onmessage = ({ data }) => onMessage(data)
      // A browser gives no reason for a script that cannot be loaded.
      worker.onerror = ({ message }) => onFailure(new Error(message || `cannot load ${url}`))
      worker.onmessageerror = () => onFailure(new Error('a message of the worker could not be decoded'))
      return { post: (message) => worker.postMessage(message), terminate: () => worker.terminate() }
    },
  }
}

async function nodeHost(): Promise<WorkerHost> {
  const [{ Worker }, { availableParallelism }] = await Promise.all([
    import(/* webpackIgnore: true */ 'node:worker_threads').catch(missing),
    import(/* webpackIgnore: true */ 'node:os').catch(missing),
  ])
  return {
    cores: availableParallelism(),
    start: ({ url, onMessage, onFailure }) => {
      const file = typeof url === 'string' && URL.canParse(url) ? new URL(url) : url
      // A worker refuses some options of its process, such as the one that runs a module from its arguments.
      const worker = new Worker(file, { execArgv: [] })
      worker.on('message', onMessage)
      worker.on('error', onFailure)
      worker.on('messageerror', onFailure)
      worker.on('exit', (code) => onFailure(new Error(`the worker exited with code ${code}`)))
      return { post: (message) => worker.postMessage(message), terminate: () => void worker.terminate() }
    },
  }
}

/**
 * Node's modules are imported dynamically, because browsers load this file too. Bundlers for browsers ignore a dynamic
 * import whose failure is handled, or that a comment tells them to.
 */
function missing(cause: unknown): never {
  throw new SearchError('UNAVAILABLE', 'workers are not available here', { cause })
}

/**
 * The connection to the thread that started this worker.
 * @throws Error if this is not a worker.
 */
export async function workerParent(): Promise<WorkerParent> {
  if (isNode) {
    const { parentPort } = await import(/* webpackIgnore: true */ 'node:worker_threads').catch(missing)
    if (parentPort === null) throw new Error('not a worker')
    return {
      post: (message) => parentPort.postMessage(message),
      onMessage: (listener) => void parentPort.on('message', listener),
    }
  }
  return {
    post: (message) => web.postMessage?.(message),
    onMessage: (listener) => {
      web.onmessage = ({ data }: { data: unknown }) => listener(data)
    },
  }
}
