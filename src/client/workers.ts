/** Workers of Node and of browsers, behind one interface. */
export interface WorkerHost {
  start(worker: {
    url: URL | string
    /** The heap of a worker in Node, in megabytes; without it, as large as Node makes it. */
    megabytes?: number
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

/** The part of `node:worker_threads` that is used here. */
interface NodeThreads {
  Worker: new (
    url: URL | string,
    options: object,
  ) => {
    on(event: 'message' | 'error' | 'messageerror', listener: (value: unknown) => void): void
    on(event: 'exit', listener: (code: number) => void): void
    postMessage(message: unknown): void
    terminate(): unknown
  }
  parentPort: {
    on(event: 'message', listener: (message: unknown) => void): void
    postMessage(message: unknown): void
  } | null
}

const isNode = typeof process === 'object' && process.versions?.node !== undefined

/** Undefined where workers are not available. */
export async function workerHost(): Promise<WorkerHost | undefined> {
  if (isNode) return await nodeHost()
  const { Worker } = web
  if (Worker === undefined) return undefined
  return {
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

/** Imports a module of Node. Browsers load this file, too: bundlers do not look for a module whose name is no literal. */
async function nodeModule(name: string) {
  return await import(/* webpackIgnore: true */ /* @vite-ignore */ name).catch(() => undefined)
}

async function nodeThreads(): Promise<NodeThreads | undefined> {
  return await nodeModule('node:worker_threads')
}

/** How many threads can run at once. */
export async function coreCount(): Promise<number> {
  if (!isNode) return web.navigator?.hardwareConcurrency ?? 1
  const os: { availableParallelism(): number } | undefined = await nodeModule('node:os')
  return os?.availableParallelism() ?? 1
}

async function nodeHost(): Promise<WorkerHost | undefined> {
  const threads = await nodeThreads()
  if (threads === undefined) return undefined
  return {
    start: ({ url, megabytes, onMessage, onFailure }) => {
      const file = typeof url === 'string' && URL.canParse(url) ? new URL(url) : url
      const worker = new threads.Worker(file, {
        // A worker refuses some options of its process, such as the one that runs a module from its arguments.
        execArgv: [],
        ...(megabytes !== undefined && { resourceLimits: { maxOldGenerationSizeMb: megabytes } }),
      })
      worker.on('message', onMessage)
      worker.on('error', onFailure)
      worker.on('messageerror', onFailure)
      worker.on('exit', (code) => onFailure(new Error(`it exited with code ${code}`)))
      return { post: (message) => worker.postMessage(message), terminate: () => void worker.terminate() }
    },
  }
}

/**
 * The connection to the thread that started this worker.
 * @throws Error if this is not a worker.
 */
export async function workerParent(): Promise<WorkerParent> {
  if (isNode) {
    const parent = (await nodeThreads())?.parentPort
    if (!parent) throw new Error('not a worker')
    return {
      post: (message) => parent.postMessage(message),
      onMessage: (listener) => void parent.on('message', listener),
    }
  }
  return {
    post: (message) => web.postMessage?.(message),
    onMessage: (listener) => {
      web.onmessage = ({ data }: { data: unknown }) => listener(data)
    },
  }
}
