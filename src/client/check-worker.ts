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

async function ask(question: CheckMessage): Promise<CheckRequest> {
  return await new Promise<CheckRequest>((resolve) => {
    onAnswer = resolve
    send(question)
  })
}

async function isValidRootForHeight(root: string, height: number): Promise<boolean> {
  const answer = await ask({ kind: 'ask', root, height })
  if (answer.kind === 'root') return answer.isValid
  throw unanswered(answer)
}

async function currentHeight(): Promise<number> {
  const answer = await ask({ kind: 'ask tip' })
  if (answer.kind === 'tip') return answer.height
  throw unanswered(answer)
}

function unanswered(answer: CheckRequest): Error {
  return new Error(answer.kind === 'no root' ? answer.message : 'no answer')
}

async function check({ hasHeaders, hasHeight, ...task }: CheckTask): Promise<void> {
  const tracker = { isValidRootForHeight, ...(hasHeight && { currentHeight }) }
  try {
    const checked = await checkEvidence({ ...task, chainTracker: hasHeaders ? tracker : 'scripts only' })
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
