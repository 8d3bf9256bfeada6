import type { CheckMessage, CheckRequest, CheckTask } from './check-in-worker.js'
import { checkEvidence } from './verify-history.js'

/** A worker that checks what one index shows, in Node and in browsers: it says that it is ready, and is told what to check. */

interface Parent {
  postMessage(message: unknown): void
  /** Of a browser. */
  onmessage?: unknown
  /** Of Node. */
  on?(event: 'message', listener: (message: unknown) => void): void
}
interface Host {
  process?: { getBuiltinModule?: (name: 'node:worker_threads') => { parentPort: Parent | null } }
}

const host = globalThis as unknown as Host & Parent
const parent = host.process?.getBuiltinModule?.('node:worker_threads').parentPort ?? host
const say = (news: CheckMessage): void => parent.postMessage(news)

/** Whoever waits for the chain tracker's answer. */
let answered: ((order: CheckRequest) => void) | undefined

const chainTracker = {
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const order = await new Promise<CheckRequest>((resolve) => {
      answered = resolve
      say({ kind: 'ask', root, height })
    })
    if (order.kind === 'root') return order.isValid
    throw new Error(order.kind === 'no root' ? order.message : 'no answer')
  },
}

async function check({ hasHeaders, ...task }: CheckTask): Promise<void> {
  try {
    const checked = await checkEvidence({ ...task, chainTracker: hasHeaders ? chainTracker : 'scripts only' })
    say({ kind: 'checked', checked })
  } catch (error) {
    const { name, message } = error as Error
    const code = String((error as { code?: unknown }).code)
    say({ kind: 'refused', error: { name, code, message } })
  }
}

function hear(order: CheckRequest): void {
  if (order.kind === 'check') void check(order.task)
  else answered?.(order)
}

if (parent.on === undefined) parent.onmessage = ({ data }: { data: CheckRequest }) => hear(data)
else parent.on('message', (order) => hear(order as CheckRequest))
say({ kind: 'ready' })
