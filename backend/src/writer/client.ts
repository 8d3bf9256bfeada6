import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { StoreUnavailableError } from '../graph/errors.js'
import { Calls, type Port, promised, revivedError } from './calls.js'
import { BusySince, CommitCount, withPatience } from './queue.js'
import type { WriterMethod, WriterReport, WriterRequest } from './thread.js'
import { submittedBytes, type Writer, type WriterStatus } from './writer.js'

/** A writer in another thread. Closing it closes the writer itself, for all its clients. */
export interface WriterClient extends Writer {
  /** Resolves when the thread has opened its files: readers find them. */
  readonly ready: Promise<void>
  /** A port by which another thread reaches the same writer; to be transferred there. */
  share(): MessagePort
  /** @param plain What the thread makes the rules of. */
  deriveBy(plain: unknown): void
  /** The thread has ended: nothing is answered until {@link connect}. */
  end(cause: unknown): void
  /** Goes on with another thread. It gets the rules by {@link deriveBy}. */
  connect(port: Port): void
}

/** @param first The thread of the writer, or a port that it serves. */
export function connectWriter(first: Port): WriterClient {
  const calls = new Calls()
  let port = first
  let [opened, ready, logRead] = [promised<void>(), promised<void>(), promised<void>()]
  let jobs: readonly string[] | undefined
  let failure: Error | undefined
  let status: WriterStatus = { state: 'rebuilding', done: 0 }
  let since = new BusySince()
  let commits = new CommitCount()
  const post = (request: WriterRequest, transfer?: MessagePort[]): void => port.postMessage(request, transfer)
  const call = (method: WriterMethod, args: unknown[], claim?: SharedArrayBuffer): Promise<unknown> => {
    if (failure !== undefined) return Promise.reject(failure)
    const { id, answer } = calls.next()
    port.postMessage({ id, method, args, ...(claim && { claim }) } satisfies WriterRequest)
    return answer
  }
  const onMessage = (message: unknown): void => {
    const report = message as WriterReport
    if ('since' in report) {
      since = new BusySince(report.since)
      commits = new CommitCount(report.commits)
      ready.resolve()
    } else if ('status' in report) {
      // A thread that has just begun has not heard of the log; this process has.
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
    record(transactions, options = {}, { patience, ...place } = {}) {
      const args = [transactions, options, { weight: submittedBytes(transactions), ...place }]
      const answer =
        patience === undefined
          ? call('record', args)
          : withPatience(({ buffer }) => call('record', args, buffer), { patience, since })
      return answer as Promise<never>
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
      failure = undefined
      ;[opened, ready, logRead] = [promised<void>(), promised<void>(), promised<void>()]
      port.on('message', onMessage)
      if (jobs !== undefined) void call('seekJobs', [jobs]).catch(() => {})
    },
  }
}
