import type { ClaimedBlock } from './bundle.js'
import type { CheckMessage, CheckRequest, CheckTask } from './check-in-worker.js'
import { checkEvidence } from './verify-history.js'
import { workerParent } from './workers.js'

/** The worker that checks an index's evidence, in Node and in browsers: it reports that it is ready, then gets its task. */

// Not awaited here: a bundle of this file is a CommonJS module.
const parent = workerParent()
const send = async (message: CheckMessage): Promise<void> => (await parent).post(message)

/** Resolves the open question with the chain tracker's answer. */
let onAnswer: ((answer: CheckRequest) => void) | undefined

async function ask(block?: ClaimedBlock): Promise<boolean | number> {
  const answer = await new Promise<CheckRequest>((resolve) => {
    onAnswer = resolve
    void send({ kind: 'ask', block })
  })
  if (answer.kind === 'answer') return answer.value
  throw new Error(answer.kind === 'no answer' ? answer.message : 'no answer')
}

async function check({ hasHeaders, hasHeight, ...task }: CheckTask): Promise<void> {
  const tracker = {
    isValidRootForHeight: async (root: string, height: number) => (await ask({ root, height })) === true,
    ...(hasHeight && { currentHeight: async () => Number(await ask()) }),
  }
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
