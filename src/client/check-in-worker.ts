import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { HeadersError, ProofError, type ProofErrorCode, SourceError } from './errors.js'
import type { Evidence } from './name-source.js'
import type { CheckedEvidence } from './verify-history.js'
import type { NameTrust } from './verify-name.js'

/** What a worker is told: what to check, once it has said that it is ready; later, what the chain tracker answers. */
export type CheckRequest =
  | { kind: 'check'; task: CheckTask }
  | { kind: 'root'; isValid: boolean }
  | { kind: 'no root'; message: string }

/** A check without what no other thread can be given: functions, and whoever waits for it. */
export interface CheckTask extends Omit<NameTrust, 'chainTracker' | 'hash' | 'signal'> {
  name: string
  evidence: Evidence
  /** Whether there is a chain tracker to ask, in the thread that started the worker. */
  hasHeaders: boolean
}

/** What a worker says. It asks about one root at a time. */
export type CheckMessage =
  | { kind: 'ready' }
  | { kind: 'ask'; root: string; height: number }
  | { kind: 'checked'; checked: CheckedEvidence }
  | { kind: 'refused'; error: { name: string; code: string; message: string } }

/** Workers are not to be had here, or theirs is a module that does not run: nothing that an index did. */
export class CheckWorkerError extends CodedError<'WORKER_FAILED'> {
  override readonly name = 'CheckWorkerError'

  constructor(message: string, options?: { cause?: unknown }) {
    super('WORKER_FAILED', message, options)
  }
}

/**
 * Checks what an index shows of a name in a worker of its own, which is ended when that is done, or when the signal says
 * so, whatever it is doing. The chain tracker is asked in this thread. `hash` is not used: a worker takes its host's.
 *
 * @param url The module of the worker; `check-worker.js` beside this one unless set.
 * @throws as `checkEvidence`, but that a ProofError has no cause; SourceError `BAD_ANSWER` where the worker breaks off over
 * what it checks, as for want of memory; CheckWorkerError.
 */
export async function checkInWorker(
  check: NameTrust & { name: string; evidence: Evidence; signal: AbortSignal },
  url: URL | string | undefined,
): Promise<CheckedEvidence> {
  const { chainTracker, signal } = check
  signal.throwIfAborted()
  let isReady = false
  let isAsking = false
  let worker: RunningWorker | undefined
  let abort = (): void => undefined
  try {
    return await new Promise<CheckedEvidence>((resolve, reject) => {
      abort = () => reject(isAsking ? new HeadersError(NOT_IN_TIME) : signal.reason)
      signal.addEventListener('abort', abort, { once: true })

      const ask = async ({ root, height }: { root: string; height: number }): Promise<CheckRequest> => {
        if (chainTracker === 'scripts only') return { kind: 'no root', message: 'there is no chain tracker' }
        isAsking = true
        try {
          return { kind: 'root', isValid: await chainTracker.isValidRootForHeight(root, height) }
        } catch (error) {
          return { kind: 'no root', message: messageOf(error) }
        } finally {
          isAsking = false
        }
      }
      const hear = (news: CheckMessage): void => {
        if (news.kind === 'ready') {
          isReady = true
          worker?.post({ kind: 'check', task: taskOf(check) })
        } else if (news.kind === 'ask') {
          void ask(news).then((order) => worker?.post(order))
        } else if (news.kind === 'checked') resolve(news.checked)
        else reject(errorOf(news.error))
      }
      const fail = (cause: unknown): void => {
        const reason = messageOf(cause)
        if (isReady)
          reject(new SourceError('BAD_ANSWER', `the worker that checks it broke off: ${reason}`, { cause }))
        else reject(new CheckWorkerError(`no worker to check with: ${reason}`, { cause }))
      }
      try {
        worker = startWorker(url ?? defaultUrl(), { hear, fail })
      } catch (cause) {
        fail(cause)
      }
    })
  } finally {
    signal.removeEventListener('abort', abort)
    worker?.terminate()
    worker = undefined
  }
}

const NOT_IN_TIME = 'the chain tracker did not answer in time'

/** Not a constant: a bundle in the old format has no URL of its own. */
function defaultUrl(): URL {
  return new URL('./check-worker.js', import.meta.url)
}

function taskOf(check: NameTrust & { name: string; evidence: Evidence }): CheckTask {
  const { name, evidence, deployment, requireProofs, maxBytes, maxScriptWork, scriptTimeout } = check
  return {
    ...{ name, evidence, deployment, hasHeaders: check.chainTracker !== 'scripts only' },
    ...(requireProofs !== undefined && { requireProofs }),
    ...(maxBytes !== undefined && { maxBytes }),
    ...(maxScriptWork !== undefined && { maxScriptWork }),
    ...(scriptTimeout !== undefined && { scriptTimeout }),
  }
}

/** An error of the worker: of classes, another thread has its own. */
function errorOf({ name, code, message }: { name: string; code: string; message: string }): Error {
  if (name === 'ProofError') return new ProofError(code as ProofErrorCode, message)
  if (name === 'HeadersError') return new HeadersError(message)
  return new SourceError('BAD_ANSWER', `the worker that checks it broke off: ${message}`)
}

function messageOf(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return line.slice(0, 200)
}

interface RunningWorker {
  post(order: CheckRequest): void
  terminate(): void
}
interface Listener {
  hear(news: CheckMessage): void
  /** The worker could not be loaded, threw, or ended of its own accord. */
  fail(cause: unknown): void
}

/** As much of Node and of browsers as is used here: the client imports nothing of either. */
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

/** What a worker of Node may hold beside the proof itself, in megabytes: one that is made to take much takes half of it. */
const WORKER_MEGABYTES = 256

function startWorker(url: URL | string, { hear, fail }: Listener): RunningWorker {
  const { process, Worker: Web } = globalThis as Host
  const Threads = process?.getBuiltinModule?.('node:worker_threads').Worker
  if (Threads !== undefined) {
    const file = typeof url === 'string' && URL.canParse(url) ? new URL(url) : url
    // Some options of a process are not for workers, such as the one that runs a module from its arguments.
    const resourceLimits = { maxOldGenerationSizeMb: WORKER_MEGABYTES }
    const worker = new Threads(file, { execArgv: [], resourceLimits })
    worker.on('message', (news: CheckMessage) => hear(news))
    worker.on('error', (error: unknown) => fail(error))
    worker.on('messageerror', (error: unknown) => fail(error))
    worker.on('exit', (code: number) => fail(new Error(`it ended with code ${code}`)))
    return { post: (order) => worker.postMessage(order), terminate: () => void worker.terminate() }
  }
  if (Web === undefined) throw new Error('there are no workers here')
  const worker = new Web(url, { type: 'module' })
  worker.onmessage = ({ data }) => hear(data as CheckMessage)
  // A script that cannot be loaded says no reason.
  worker.onerror = ({ message }) => fail(new Error(message || `nothing runs at ${url}`))
  return { post: (order) => worker.postMessage(order), terminate: () => worker.terminate() }
}
