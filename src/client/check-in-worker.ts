import { CodedError, messageOf } from '../../backend/src/protocol/coded-error.js'
import { HeadersError, ProofError, type ProofErrorCode, SourceError } from './errors.js'
import type { KnownName } from './known-name.js'
import type { Evidence } from './name-source.js'
import type { CheckedEvidence, CheckedPart } from './verify-history.js'
import type { NameTrust, SoughtName } from './verify-name.js'
import { TRACKER_TIMEOUT } from './verify-transactions.js'

/** Messages to a worker: the check, once it is ready; later, the answers of the chain tracker. */
export type CheckRequest =
  | { kind: 'check'; task: CheckTask }
  | { kind: 'root'; isValid: boolean }
  | { kind: 'tip'; height: number }
  | { kind: 'no root'; message: string }

/** A check in the form that can be sent to another thread: without functions and signals. */
export interface CheckTask extends Omit<NameTrust, 'chainTracker' | 'hash' | 'signal'> {
  name: string
  evidence: Evidence
  earlier: KnownName | undefined
  /** Whether the parent thread has a chain tracker to ask, and one that says how high the chain is. */
  hasHeaders: boolean
  hasHeight: boolean
}

/** Messages from a worker. It asks one question at a time: about a root, or how high the chain is. */
export type CheckMessage =
  | { kind: 'ready' }
  | { kind: 'ask'; root: string; height: number }
  | { kind: 'ask tip' }
  | { kind: 'checked'; checked: CheckedEvidence | CheckedPart }
  | { kind: 'refused'; error: { name: string; code: string; message: string } }

/** Workers are not available, or the worker module does not run. No index is to blame. */
export class CheckWorkerError extends CodedError {
  override readonly name = 'CheckWorkerError'
  readonly code = 'WORKER_FAILED'
}

/**
 * Checks evidence in a worker of its own, which is terminated when the check is done or the signal is aborted, whatever
 * it is doing. The chain tracker is asked from this thread. `hash` is ignored: a worker uses its host's.
 *
 * @param url The worker module; by default `check-worker.js` next to this one.
 * @throws as `checkEvidence`, with a ProofError that has no cause; SourceError `BAD_ANSWER` if the worker fails during the
 * check, for example for lack of memory; CheckWorkerError.
 */
export async function checkInWorker(
  check: NameTrust & SoughtName & { evidence: Evidence; signal: AbortSignal },
  url: URL | string | undefined,
): Promise<CheckedEvidence | CheckedPart> {
  const { chainTracker, signal } = check
  signal.throwIfAborted()
  let isReady = false
  let isAsking = false
  let worker: RunningWorker | undefined
  let abort = (): void => undefined
  try {
    return await new Promise<CheckedEvidence | CheckedPart>((resolve, reject) => {
      abort = () => reject(isAsking ? new HeadersError(TRACKER_TIMEOUT) : signal.reason)
      signal.addEventListener('abort', abort, { once: true })

      const ask = async (
        question: Extract<CheckMessage, { kind: 'ask' | 'ask tip' }>,
      ): Promise<CheckRequest> => {
        if (chainTracker === 'scripts only') return { kind: 'no root', message: 'there is no chain tracker' }
        isAsking = true
        try {
          if (question.kind === 'ask tip')
            return { kind: 'tip', height: (await chainTracker.currentHeight?.()) ?? 0 }
          const { root, height } = question
          return { kind: 'root', isValid: await chainTracker.isValidRootForHeight(root, height) }
        } catch (error) {
          return { kind: 'no root', message: shortMessageOf(error) }
        } finally {
          isAsking = false
        }
      }
      const onMessage = (message: CheckMessage): void => {
        if (message.kind === 'ready') {
          isReady = true
          worker?.post({ kind: 'check', task: taskOf(check) })
        } else if (message.kind === 'ask' || message.kind === 'ask tip') {
          void ask(message).then((request) => worker?.post(request))
        } else if (message.kind === 'checked') resolve(message.checked)
        else reject(errorOf(message.error))
      }
      const onFailure = (cause: unknown): void => {
        const reason = shortMessageOf(cause)
        if (isReady)
          reject(new SourceError('BAD_ANSWER', `the worker failed during the check: ${reason}`, { cause }))
        else reject(new CheckWorkerError(`cannot start a worker: ${reason}`, { cause }))
      }
      try {
        worker = startWorker(url ?? defaultUrl(), { onMessage, onFailure })
      } catch (cause) {
        onFailure(cause)
      }
    })
  } finally {
    signal.removeEventListener('abort', abort)
    worker?.terminate()
    worker = undefined
  }
}

/** Computed when needed: bundles in CommonJS format have no URL of their own. */
function defaultUrl(): URL {
  return new URL('./check-worker.js', import.meta.url)
}

function taskOf(check: NameTrust & SoughtName & { evidence: Evidence }): CheckTask {
  const { name, evidence, earlier, deployment, requireProofs, maxBytes, maxScriptWork, scriptTimeout } = check
  const { chainTracker } = check
  return {
    ...{ name, evidence, earlier, deployment, hasHeaders: chainTracker !== 'scripts only' },
    hasHeight: chainTracker !== 'scripts only' && chainTracker.currentHeight !== undefined,
    requireProofs,
    maxBytes,
    maxScriptWork,
    scriptTimeout,
  }
}

/** Rebuilds an error from the worker, whose classes are not this thread's. */
function errorOf({ name, code, message }: { name: string; code: string; message: string }): Error {
  if (name === 'ProofError') return new ProofError(code as ProofErrorCode, message)
  if (name === 'HeadersError') return new HeadersError(message)
  return new SourceError('BAD_ANSWER', `the worker failed during the check: ${message}`)
}

function shortMessageOf(error: unknown): string {
  const [line = ''] = messageOf(error).split('\n')
  return line.slice(0, 200)
}

interface RunningWorker {
  post(request: CheckRequest): void
  terminate(): void
}
interface Listener {
  onMessage(message: CheckMessage): void
  /** The worker could not be loaded, threw, or exited by itself. */
  onFailure(cause: unknown): void
}

/** The part of Node and of browsers that is used here: the client imports nothing of either. */
interface Host {
  process?: { getBuiltinModule?: (name: 'node:worker_threads') => { Worker: NodeWorker } }
  Worker?: WebWorker
}
type NodeWorker = new (
  url: URL | string,
  options: { execArgv: string[]; resourceLimits: { maxOldGenerationSizeMb: number } },
) => {
  on(event: 'message' | 'error' | 'messageerror' | 'exit', listener: (value: never) => void): void
  postMessage(message: unknown): void
  terminate(): unknown
}
type WebWorker = new (
  url: URL | string,
  options: { type: 'module' },
) => {
  onmessage: ((event: { data: unknown }) => void) | null
  onerror: ((event: { message?: string }) => void) | null
  postMessage(message: unknown): void
  terminate(): void
}

/** The heap of a worker in Node beside the proof itself, in megabytes; the most demanding proof known takes half of it. */
const WORKER_MEGABYTES = 256

function startWorker(url: URL | string, { onMessage, onFailure }: Listener): RunningWorker {
  const { process, Worker: Web } = globalThis as Host
  const Threads = process?.getBuiltinModule?.('node:worker_threads').Worker
  if (Threads !== undefined) {
    const file = typeof url === 'string' && URL.canParse(url) ? new URL(url) : url
    // A worker refuses some options of its process, such as the one that runs a module from its arguments.
    const resourceLimits = { maxOldGenerationSizeMb: WORKER_MEGABYTES }
    const worker = new Threads(file, { execArgv: [], resourceLimits })
    worker.on('message', onMessage)
    worker.on('error', onFailure)
    worker.on('messageerror', onFailure)
    worker.on('exit', (code: number) => onFailure(new Error(`it exited with code ${code}`)))
    return { post: (request) => worker.postMessage(request), terminate: () => void worker.terminate() }
  }
  if (Web === undefined) throw new Error('workers are not available here')
  const worker = new Web(url, { type: 'module' })
  worker.onmessage = ({ data }) => onMessage(data as CheckMessage)
  // A browser gives no reason for a script that cannot be loaded.
  worker.onerror = ({ message }) => onFailure(new Error(message || `cannot load ${url}`))
  return { post: (request) => worker.postMessage(request), terminate: () => worker.terminate() }
}
