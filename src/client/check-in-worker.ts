import { CodedError, messageOf } from '../../backend/src/protocol/coded-error.js'
import type { ClaimedBlock } from './bundle.js'
import { HeadersError, ProofError, type ProofErrorCode, SourceError } from './errors.js'
import type { KnownName } from './known-name.js'
import type { Evidence } from './name-source.js'
import type { CheckedEvidence, CheckedPart } from './verify-history.js'
import type { NameTrust, SoughtName } from './verify-name.js'
import { TRACKER_TIMEOUT } from './verify-transactions.js'
import { type RunningWorker, workerHost } from './workers.js'

/** Messages to a worker: the check, once it is ready; later, the answers of the chain tracker. */
export type CheckRequest =
  | { kind: 'check'; task: CheckTask }
  | { kind: 'answer'; value: boolean | number }
  | { kind: 'no answer'; message: string }

/** A check without functions and signals, which can be sent to another thread. */
export interface CheckTask extends Omit<NameTrust, 'chainTracker' | 'hash' | 'signal'> {
  name: string
  evidence: Evidence
  earlier: KnownName | undefined
  /** Whether the parent thread has a chain tracker, and whether that knows the height of the chain. */
  hasHeaders: boolean
  hasHeight: boolean
}

/** Messages from a worker. It asks one question at a time: whether a block has a root, or how high the chain is. */
export type CheckMessage =
  | { kind: 'ready' }
  | { kind: 'ask'; block?: ClaimedBlock | undefined }
  | { kind: 'checked'; checked: CheckedEvidence | CheckedPart }
  | { kind: 'refused'; error: { name: string; code: string; message: string } }

/** The heap of a worker in Node, without the proof itself, in megabytes; the most demanding proof known takes half of it. */
const WORKER_MEGABYTES = 256

/** Workers are not available, or the worker module does not run: no fault of an index. */
export class CheckWorkerError extends CodedError {
  override readonly name = 'CheckWorkerError'
  readonly code = 'WORKER_FAILED'
}

/**
 * Checks evidence in a worker of its own, which is terminated when the check is done or the signal is aborted, whatever it is
 * doing. The chain tracker is asked from this thread. `hash` is ignored: a worker uses that of its host.
 *
 * @param url The worker module; by default `check-worker.js` next to this one.
 * @throws as `checkEvidence`, with a ProofError that has no cause; SourceError `BAD_ANSWER` if the worker fails during the check,
 * for example for lack of memory; CheckWorkerError.
 */
export async function checkInWorker(
  check: NameTrust & SoughtName & { evidence: Evidence; signal: AbortSignal },
  url: URL | string | undefined,
): Promise<CheckedEvidence | CheckedPart> {
  const { chainTracker, signal } = check
  const host = await workerHost()
  if (host === undefined) throw new CheckWorkerError('cannot start a worker: workers are not available here')
  signal.throwIfAborted()
  let isReady = false
  let isAsking = false
  let worker: RunningWorker | undefined
  let abort = (): void => undefined
  try {
    return await new Promise<CheckedEvidence | CheckedPart>((resolve, reject) => {
      abort = () => reject(isAsking ? new HeadersError(TRACKER_TIMEOUT) : signal.reason)
      signal.addEventListener('abort', abort, { once: true })

      const ask = async (block: ClaimedBlock | undefined): Promise<CheckRequest> => {
        if (chainTracker === 'scripts only')
          return { kind: 'no answer', message: 'there is no chain tracker' }
        isAsking = true
        try {
          const value = block
            ? await chainTracker.isValidRootForHeight(block.root, block.height)
            : ((await chainTracker.currentHeight?.()) ?? 0)
          return { kind: 'answer', value }
        } catch (error) {
          return { kind: 'no answer', message: shortMessageOf(error) }
        } finally {
          isAsking = false
        }
      }
      const onMessage = (said: unknown): void => {
        const message = said as CheckMessage
        if (message.kind === 'ready') {
          isReady = true
          worker?.post({ kind: 'check', task: taskOf(check) })
        } else if (message.kind === 'ask') {
          void ask(message.block).then((request) => worker?.post(request))
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
        worker = host.start({
          ...{ url: url ?? defaultUrl(), megabytes: WORKER_MEGABYTES },
          onMessage,
          onFailure,
        })
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

/** Computed on use: bundles in CommonJS format have no URL of their own. */
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
