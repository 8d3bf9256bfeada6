import type { CheckMessage, CheckRequest, CheckTask } from './check-in-worker.js'
import { checkEvidence } from './verify-history.js'

/** The worker that checks an index's evidence, in Node and in browsers: it reports that it is ready, then gets its task. */

interface Parent {
  postMessage(message: unknown): void
  /** In browsers. */
  onmessage?: unknown
  /** In Node. */
  on?(event: 'message', listener: (message: unknown) => void): void
}
interface Host {
  process?: { getBuiltinModule?: (name: 'node:worker_threads') => { parentPort: Parent | null } }
}

const host = globalThis as unknown as Host & Parent
const parent = host.process?.getBuiltinModule?.('node:worker_threads').parentPort ?? host
const send = (message: CheckMessage): void => parent.postMessage(message)

/** Resolves with the chain tracker's answer to the question that is open. */
let onAnswer: ((answer: CheckRequest) => void) | undefined

const chainTracker = {
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const answer = await new Promise<CheckRequest>((resolve) => {
      onAnswer = resolve
      send({ kind: 'ask', root, height })
    })
    if (answer.kind === 'root') return answer.isValid
    throw new Error(answer.kind === 'no root' ? answer.message : 'no answer')
  },
}

async function check({ hasHeaders, ...task }: CheckTask): Promise<void> {
  try {
    const checked = await checkEvidence({ ...task, chainTracker: hasHeaders ? chainTracker : 'scripts only' })
    send({ kind: 'checked', checked })
  } catch (error) {
    const { name, message } = error as Error
    const code = String((error as { code?: unknown }).code)
    send({ kind: 'refused', error: { name, code, message } })
  }
}

function onMessage(request: CheckRequest): void {
  if (request.kind === 'check') void check(request.task)
  else onAnswer?.(request)
}

if (parent.on === undefined) parent.onmessage = ({ data }: { data: CheckRequest }) => onMessage(data)
else parent.on('message', (request) => onMessage(request as CheckRequest))
send({ kind: 'ready' })
