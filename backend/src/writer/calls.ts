import type { MessagePort, Worker } from 'node:worker_threads'
import { StoreUnavailableError } from '../graph/errors.js'

type Transferred = (MessagePort | ArrayBuffer)[]

/** The interface of both ends of a channel between threads. */
export interface Port {
  postMessage(message: unknown, transfer?: Transferred): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

/** A call of a method of an object in another thread. The answer has the same id. */
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

/** A promise with its resolvers. Nobody has to handle its rejection. */
export interface Promised<Result = unknown> {
  promise: Promise<Result>
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/** The calls of this thread that wait for their answers. */
export class Calls {
  private readonly waiting = new Map<number, Omit<Promised, 'promise'>>()
  private nextId = 0
  private refusal: unknown

  /** @param revive Restores the error of a failed call. */
  constructor(private readonly revive: (failed: PlainError) => Error = revivedError) {}

  /** Calls a method behind a port. */
  ask(port: Pick<Port, 'postMessage'>, call: Omit<Call, 'id'>, transfer?: Transferred): Promise<unknown> {
    if (this.refusal !== undefined) return Promise.reject(this.refusal)
    const id = this.nextId++
    port.postMessage({ id, ...call }, transfer)
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }))
  }

  take(answer: CallAnswer): void {
    const call = this.waiting.get(answer.id)
    this.waiting.delete(answer.id)
    if ('done' in answer) call?.resolve(answer.done)
    else call?.reject(this.revive(answer.failed))
  }

  /** Rejects all waiting and later calls, as nobody will answer them. */
  refuse(error: unknown): void {
    this.refusal = error
    for (const { reject } of this.waiting.values()) reject(error)
    this.waiting.clear()
  }
}

/** Calls methods of an object that another thread serves ({@link serveCalls}). */
export function callsOver(
  port: Port,
  revive?: (failed: PlainError) => Error,
): (method: string, ...args: unknown[]) => Promise<never> {
  const calls = new Calls(revive)
  port.on('message', (answer) => calls.take(answer as CallAnswer))
  return (method, ...args) => calls.ask(port, { method, args }) as Promise<never>
}

/** Lets another thread call the methods of an object. @param plain Converts errors to plain data. */
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

/** Restores an error. Its code identifies it. */
export function revivedError({ name, message, stack, code }: PlainError): Error {
  const error = Object.assign(new Error(message), { name, ...(stack && { stack }), ...(code && { code }) })
  // Callers recognise this one by its class.
  return code === 'STORE_UNAVAILABLE' ? new StoreUnavailableError(error) : error
}

/** Calls a listener when a thread has ended. @param listener Gets the exit code and the cause. */
export function onThreadEnd(thread: Worker, listener: (code: number, cause: unknown) => void): void {
  let failure: unknown
  thread.on('error', (error) => {
    failure = error
  })
  thread.on('exit', (code) => listener(code, failure ?? new Error(`it exited with code ${code}`)))
}

export function promised<Result = unknown>(): Promised<Result> {
  let decided: Omit<Promised<Result>, 'promise'> | undefined
  const promise = new Promise<Result>((resolve, reject) => {
    decided = { resolve, reject }
  })
  promise.catch(() => {})
  return { promise, ...(decided as Omit<Promised<Result>, 'promise'>) }
}
