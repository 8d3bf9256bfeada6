import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { StoreUnavailableError } from '../graph/errors.js'
import {
  answered,
  type Call,
  type CallAnswer,
  Calls,
  type PlainError,
  type Port,
  plainError,
  promised,
  revivedError,
} from './calls.js'
import type { LocalWriter } from './local-writer.js'
import { SharedNumber, withPatience } from './queue.js'
import { submittedBytes, type Writer, type WriterStatus } from './writer.js'

/** A writer in another thread. Closing it closes the writer itself, for all its clients. */
export interface WriterClient extends Writer {
  /** Resolves when the thread has opened its files, so that readers find them. */
  readonly ready: Promise<void>
  /** A port to the same writer, to be transferred to another thread. */
  share(): MessagePort
  /** @param plain Plain data from which the thread makes the rules. */
  deriveBy(plain: unknown): void
  /** Call this when the thread has ended: all calls fail until {@link connect}. */
  end(cause: unknown): void
  /** Continues with another thread, which gets the rules by {@link deriveBy}. */
  connect(port: Port): void
}

/** @param first The thread of the writer, or a port that it serves. */
export function connectWriter(first: Port): WriterClient {
  let calls = new Calls()
  let port = first
  let [opened, ready, logRead] = [promised<void>(), promised<void>(), promised<void>()]
  let jobs: readonly string[] | undefined
  let failure: Error | undefined
  let status: WriterStatus = { state: 'rebuilding', done: 0 }
  let since = new SharedNumber()
  let commits = new SharedNumber()
  const post = (request: WriterRequest, transfer?: MessagePort[]): void => port.postMessage(request, transfer)
  const call = (method: WriterMethod, args: unknown[]): Promise<unknown> => calls.ask(port, { method, args })
  const onMessage = (message: unknown): void => {
    const report = message as WriterReport
    if ('since' in report) {
      since = new SharedNumber(report.since)
      commits = new SharedNumber(report.commits)
      ready.resolve()
    } else if ('status' in report) {
      // A new thread has not read the log yet, but this process has.
      status = { ...(status.heardAt !== undefined && { heardAt: status.heardAt }), ...report.status }
      if (status.state !== 'reading') logRead.resolve()
      if (status.state === 'equal') opened.resolve()
    } else if ('notOpened' in report) {
      for (const each of [opened, logRead]) each.reject(revivedError(report.notOpened))
    } else calls.take(report)
  }
  port.on('message', onMessage)
  return {
    change: (...args) => call('change', args) as Promise<never>,
    note: (...args) => call('note', args) as Promise<never>,
    setting: (...args) => call('setting', args) as Promise<never>,
    async seekJobs(sought) {
      jobs = sought
      await call('seekJobs', [sought])
    },
    close: () => call('close', []) as Promise<never>,
    get opened() {
      return opened.promise
    },
    get logRead() {
      return logRead.promise
    },
    get ready() {
      return ready.promise
    },
    get status() {
      return status
    },
    get commits() {
      return commits
    },
    get failure() {
      return failure
    },
    record(transactions, options = {}, { patience, weight = submittedBytes(transactions), ...place } = {}) {
      const record = (claim?: SharedArrayBuffer): Promise<unknown> =>
        call('record', [transactions, options, { ...place, weight, ...(claim && { claim }) }])
      const recorded = patience === undefined ? record() : withPatience(record, { patience, since })
      return recorded as Promise<never>
    },
    share() {
      const { port1, port2 } = new MessageChannel()
      post({ share: port1 }, [port1])
      return port2
    },
    deriveBy: (plain) => post({ deriveBy: plain }),
    end(cause) {
      failure = new StoreUnavailableError(cause)
      const { heardAt } = status
      status = { state: 'ended', done: status.done, ...(heardAt !== undefined && { heardAt }) }
      for (const { reject } of [opened, ready, logRead]) reject(failure)
      calls.refuse(failure)
    },
    connect(next) {
      port = next
      calls = new Calls()
      failure = undefined
      ;[opened, ready, logRead] = [promised<void>(), promised<void>(), promised<void>()]
      port.on('message', onMessage)
      if (jobs !== undefined) void call('seekJobs', [jobs]).catch(() => {})
    },
  }
}

/** Heap of a writer thread, mostly for transactions with many outputs. If it runs out, the thread ends, not the process. */
export const WRITER_HEAP_MIB = 1024

/** The methods of a writer that other threads may call. */
type WriterMethod = Exclude<keyof Writer, 'status' | 'failure' | 'opened' | 'logRead' | 'commits'>

/** The messages to the thread of a writer. */
type WriterRequest =
  | Call
  /** A channel for another thread, which may write, too. */
  | { share: MessagePort }
  /** Plain data from which the rules are made. */
  | { deriveBy: unknown }

/** The messages from it. */
type WriterReport =
  | CallAnswer
  | { status: WriterStatus }
  | { notOpened: PlainError }
  /** Sent first, in shared memory: since when the writer is busy, and the number of commits. */
  | { since: SharedArrayBuffer; commits: SharedArrayBuffer }

interface ServeOptions {
  /** Gives the writer rules made from plain data. */
  deriveBy: (plain: unknown) => void
  /** Called after the writer was closed. */
  onClosed: () => void
}

/** Serves a writer to other threads, over a port and over the ports received on it. */
export function serveWriter(writer: LocalWriter, port: Port, options: ServeOptions): void {
  const report = (message: WriterReport): void => port.postMessage(message)
  port.on('message', (message) => {
    const request = message as WriterRequest
    if ('share' in request) return serveWriter(writer, request.share, options)
    if ('deriveBy' in request) return options.deriveBy(request.deriveBy)
    void answered(writer, request).then((answer) => {
      report(answer)
      if (request.method === 'close' && 'done' in answer) options.onClosed()
    })
  })
  report({ since: writer.since.buffer, commits: writer.commits.buffer })
  writer.onStatus((status) => report({ status }))
  writer.opened.catch((error: unknown) => report({ notOpened: plainError(error) }))
}
