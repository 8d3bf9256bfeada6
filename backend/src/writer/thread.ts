import type { MessagePort } from 'node:worker_threads'
import { StoreUnavailableError } from '../graph/errors.js'
import type { LocalWriter } from './local-writer.js'
import { Claim } from './queue.js'
import type { Place, Writer, WriterStatus } from './writer.js'

/** The heap of that thread: a transaction of many outputs takes most. If it runs out, the thread ends, and not the process. */
export const WRITER_HEAP_MIB = 1024

/** What may be asked of a writer in another thread. */
export type WriterMethod = Exclude<keyof Writer, 'status' | 'failure' | 'opened' | 'logRead' | 'commits'>

/** The messages to the thread of a writer. */
export type WriterRequest =
  /** @param claim That of a write with limited patience, which is its last argument. */
  | { id: number; method: WriterMethod; args: unknown[]; claim?: SharedArrayBuffer }
  /** Another thread's end of a channel: it may write, too. */
  | { share: MessagePort }
  /** What the rules follow from, as plain data. */
  | { deriveBy: unknown }

/** The messages from it. */
export type WriterReport =
  | { id: number; done: unknown }
  | { id: number; failed: PlainError }
  | { status: WriterStatus }
  | { notOpened: PlainError }
  /** First of all, in shared memory: since when it is busy, and how many commits there were. */
  | { since: SharedArrayBuffer; commits: SharedArrayBuffer }

/** An error as plain data: one that is posted loses its class and its code. */
export interface PlainError {
  name: string
  message: string
  stack: string | undefined
  code: string | undefined
}

/** What both ends of a channel can do. */
export interface Port {
  postMessage(message: unknown, transfer?: MessagePort[]): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

export interface ServeOptions {
  /** Has the rules derived that the writer is to use. */
  deriveBy: (plain: unknown) => void
  /** Called after the writer was closed. */
  onClosed: () => void
}

/** Serves a writer to other threads: over a port, and over those that come by it. */
export function serveWriter(writer: LocalWriter, port: Port, options: ServeOptions): void {
  const report = (message: WriterReport): void => port.postMessage(message)
  const call = async (request: Extract<WriterRequest, { id: number }>): Promise<void> => {
    const { id, method, args, claim } = request
    try {
      if (claim !== undefined) args.push({ ...(args.pop() as Place), claim: new Claim(claim) })
      const run = writer[method] as (...args: unknown[]) => Promise<unknown>
      report({ id, done: await run.apply(writer, args) })
      if (method === 'close') options.onClosed()
    } catch (error) {
      report({ id, failed: plainError(error) })
    }
  }
  port.on('message', (message) => {
    const request = message as WriterRequest
    if ('share' in request) serveWriter(writer, request.share, options)
    else if ('deriveBy' in request) options.deriveBy(request.deriveBy)
    else void call(request)
  })
  report({ since: writer.since.buffer, commits: writer.commits.buffer })
  writer.onStatus((status) => report({ status }))
  writer.opened.catch((error: unknown) => report({ notOpened: plainError(error) }))
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
