import type { MessagePort } from 'node:worker_threads'
import { answered, type Call, type CallAnswer, type PlainError, type Port, plainError } from './calls.js'
import type { LocalWriter } from './local-writer.js'
import { Claim } from './queue.js'
import type { Place, Writer, WriterStatus } from './writer.js'

/** The heap of that thread: a transaction of many outputs takes most. If it runs out, the thread ends, and not the process. */
export const WRITER_HEAP_MIB = 1024

/** What may be asked of a writer in another thread. */
export type WriterMethod = Exclude<keyof Writer, 'status' | 'failure' | 'opened' | 'logRead' | 'commits'>

/** @param claim That of a write with limited patience, which is its last argument. */
type WriterCall = Call & { claim?: SharedArrayBuffer }

export type WriterRequest =
  | WriterCall
  /** Another thread's end of a channel: it may write, too. */
  | { share: MessagePort }
  /** What the rules follow from, as plain data. */
  | { deriveBy: unknown }

export type WriterReport =
  | CallAnswer
  | { status: WriterStatus }
  | { notOpened: PlainError }
  /** First of all, in shared memory: since when it is busy, and how many commits there were. */
  | { since: SharedArrayBuffer; commits: SharedArrayBuffer }

export interface ServeOptions {
  deriveBy: (plain: unknown) => void
  /** Called after the writer was closed. */
  onClosed: () => void
}

/** Serves a writer to other threads: over a port, and over those that come by it. */
export function serveWriter(writer: LocalWriter, port: Port, options: ServeOptions): void {
  const report = (message: WriterReport): void => port.postMessage(message)
  port.on('message', async (message) => {
    const request = message as WriterRequest
    if ('share' in request) serveWriter(writer, request.share, options)
    else if ('deriveBy' in request) options.deriveBy(request.deriveBy)
    else {
      const { claim, ...call } = request
      const { args, method } = call
      if (claim !== undefined) args.push({ ...(args.pop() as Place), claim: new Claim(claim) })
      const answer = await answered(writer, call)
      port.postMessage(answer satisfies WriterReport)
      if (method === 'close' && 'done' in answer) options.onClosed()
    }
  })
  report({ since: writer.since.buffer, commits: writer.commits.buffer })
  writer.onStatus((status) => report({ status }))
  writer.opened.catch((error: unknown) => report({ notOpened: plainError(error) }))
}
