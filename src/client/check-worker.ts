import type { CheckMessage, CheckRequest, CheckTask } from './check-in-worker.js'
import { checkEvidence } from './verify-history.js'
import { workerParent } from './workers.js'

/** The worker that checks an index's evidence, in Node and in browsers: it reports that it is ready, then gets its task. */

// Not awaited here: a bundle of this file is a CommonJS module.
const parent = workerParent()
const send = async (message: CheckMessage): Promise<void> => (await parent).post(message)

/** Resolves with the chain tracker's answer to the question that is open. */
let onAnswer: ((answer: CheckRequest) => void) | undefined

async function ask(question: CheckMessage): Promise<CheckRequest> {
  return await new Promise<CheckRequest>((resolve) => {
    onAnswer = resolve
    void send(question)
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
    await send({ kind: 'checked', checked })
  } catch (error) {
    const { name, message } = error as Error
    const code = String((error as { code?: unknown }).code)
    await send({ kind: 'refused', error: { name, code, message } })
  }
}

function onMessage(request: CheckRequest): void {
  if (request.kind === 'check') void check(request.task)
  else onAnswer?.(request)
}

void parent.then(({ post, onMessage: listen }) => {
  listen((request) => onMessage(request as CheckRequest))
  post({ kind: 'ready' })
})
