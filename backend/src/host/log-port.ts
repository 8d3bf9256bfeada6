import type { MessagePort } from 'node:worker_threads'
import { OtherLogError, type SharedLog, START } from '../facts/shared-log.js'
import { type PlainError, plainError, revivedError } from '../writer/thread.js'

type LogMethod = Exclude<keyof SharedLog, 'id' | 'warning'>

interface LogCall {
  id: number
  method: LogMethod
  args: unknown[]
}
type LogAnswer = { id: number; done: unknown } | { id: number; failed: PlainError }

/** Lets another thread use a log whose connection is in this one, as that of a host is. */
export function serveLog(log: SharedLog, port: MessagePort): void {
  port.on('message', async ({ id, method, args }: LogCall) => {
    let answer: LogAnswer
    try {
      answer = { id, done: await (log[method] as (...args: unknown[]) => Promise<unknown>)(...args) }
    } catch (error) {
      answer = { id, failed: plainError(error) }
    }
    port.postMessage(answer)
    if (method === 'close') port.close()
  })
  // Nobody waits for it alone.
  port.unref()
}

/** The log that another thread serves. */
export function logOver(port: MessagePort, id: string): SharedLog {
  const calls = new Map<number, { resolve(done: unknown): void; reject(error: Error): void }>()
  let next = 0
  port.on('message', (answer: LogAnswer) => {
    const call = calls.get(answer.id)
    calls.delete(answer.id)
    if ('done' in answer) call?.resolve(answer.done)
    else call?.reject(errorOf(answer.failed))
  })
  const call =
    (method: LogMethod) =>
    (...args: unknown[]): Promise<never> =>
      new Promise((resolve, reject) => {
        const id = next++
        calls.set(id, { resolve: resolve as (done: unknown) => void, reject })
        port.postMessage({ id, method, args } satisfies LogCall)
      })
  const methods: Record<LogMethod, (...args: unknown[]) => Promise<never>> = {
    ...{ insert: call('insert'), after: call('after'), get: call('get'), last: call('last') },
    ...{ discard: call('discard'), notes: call('notes'), note: call('note') },
    ...{ replaceNote: call('replaceNote'), complete: call('complete') },
    ...{ overwrite: call('overwrite'), collect: call('collect'), close: call('close') },
  }
  return { id, ...methods }
}

/** What a writer tells apart by its class. */
function errorOf(failed: PlainError): Error {
  const error = revivedError(failed)
  if (failed.code !== 'OTHER_LOG') return error
  return Object.assign(new OtherLogError(START), { message: error.message })
}
