import type { MessagePort } from 'node:worker_threads'
import { StoreUnavailableError } from '../graph/errors.js'

/** What both ends of a channel between threads can do. */
export interface Port {
  postMessage(message: unknown, transfer?: MessagePort[]): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

/** A call of a method of an object in another thread. Its answer has the same number. */
export interface Call {
  id: number
  method: string
  args: unknown[]
}

export type CallAnswer = { id: number; done: unknown } | { id: number; failed: PlainError }

/** An error as plain data: one that is posted loses its class and its code. */
export interface PlainError {
  name: string
  message: string
  stack: string | undefined
  code: string | undefined
}

/** A promise, and what decides it. Nobody has to wait for it. */
export interface Promised<Result = unknown> {
  promise: Promise<Result>
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/** The calls of this thread that wait for their answers. */
export class Calls {
  private readonly waiting = new Map<number, Omit<Promised, 'promise'>>()
  private nextId = 0

  /** @param revive Makes the error again that a call failed with. */
  constructor(private readonly revive: (failed: PlainError) => Error = revivedError) {}

  /** The number of a call, and its answer. */
  next(): { id: number; answer: Promise<unknown> } {
    const id = this.nextId++
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }))
    return { id, answer }
  }

  take(answer: CallAnswer): void {
    const call = this.waiting.get(answer.id)
    this.waiting.delete(answer.id)
    if ('done' in answer) call?.resolve(answer.done)
    else call?.reject(this.revive(answer.failed))
  }

  /** Rejects all that wait: nobody answers them any more. */
  refuse(error: unknown): void {
    for (const { reject } of this.waiting.values()) reject(error)
    this.waiting.clear()
  }
}

/** The methods of an object that another thread serves ({@link serveCalls}). */
export function callsOver(
  port: Port,
  revive?: (failed: PlainError) => Error,
): (method: string, ...args: unknown[]) => Promise<never> {
  const calls = new Calls(revive)
  port.on('message', (answer) => calls.take(answer as CallAnswer))
  return (method, ...args) => {
    const { id, answer } = calls.next()
    port.postMessage({ id, method, args } satisfies Call)
    return answer as Promise<never>
  }
}

/** Lets another thread call the methods of an object. @param plain Makes plain data of an error. */
export function serveCalls(port: Port, target: object, plain = plainError): void {
  port.on('message', async (call) => port.postMessage(await answered(target, call as Call, plain)))
}

export async function answered(
  target: object,
  { id, method, args }: Call,
  plain = plainError,
): Promise<CallAnswer> {
  try {
    const run = Reflect.get(target, method) as (...args: unknown[]) => unknown
    return { id, done: await run.apply(target, args) }
  } catch (error) {
    return { id, failed: plain(error) }
  }
}

export function plainError(error: unknown): PlainError {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const code = (error as { code?: unknown } | null)?.code
  return { name, message, stack, code: code === undefined ? undefined : String(code) }
}

/** The error again: its code says what it is. */
export function revivedError({ name, message, stack, code }: PlainError): Error {
  const error = Object.assign(new Error(message), { name, ...(stack && { stack }), ...(code && { code }) })
  // Those who wait tell this one by its class.
  return code === 'STORE_UNAVAILABLE' ? new StoreUnavailableError(error) : error
}

export function promised<Result = unknown>(): Promised<Result> {
  let decided: Omit<Promised<Result>, 'promise'> | undefined
  const promise = new Promise<Result>((resolve, reject) => {
    decided = { resolve, reject }
  })
  promise.catch(() => {})
  return { promise, ...(decided as Omit<Promised<Result>, 'promise'>) }
}
