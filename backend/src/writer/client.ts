import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { AncestorTry } from '../facts/state.js'
import type { BlockedRecord, BlockedSubject } from '../graph/blocklist.js'
import { StoreUnavailableError } from '../graph/errors.js'
import type { SightingRecord } from '../graph/graph-store.js'
import type { HeaderChain } from '../graph/header-chain.js'
import type { FailedHook } from '../graph/hook-outbox.js'
import type { HeldSubmission } from '../graph/host-store.js'
import type { Block, TransactionRecord } from '../graph/records.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { BusySince, withPatience } from './queue.js'
import {
  type Port,
  revivedError,
  type WriterMethod,
  type WriterReport,
  type WriterRequest,
} from './thread.js'
import type { Place, RecordTransactions, Writer, WriterStatus } from './writer.js'

type Result<Method extends WriterMethod> = ReturnType<Writer[Method]>

interface Call {
  resolve: (result: unknown) => void
  reject: (error: unknown) => void
}

/** A writer in another thread. */
export class WriterClient implements Writer {
  readonly opened: Promise<void>
  /** Resolves when the thread has opened its files: readers find them. */
  readonly ready: Promise<void>
  status: WriterStatus = { state: 'rebuilding', done: 0 }
  /** Called when the writer is to be closed. */
  onClose: () => void = () => {}
  private since = new BusySince()
  private readonly calls = new Map<number, Call>()
  private nextId = 0
  private failure: Error | undefined
  private readonly report: { opened: Call; ready: Call }

  /** @param port The thread itself, or a port that it serves. */
  constructor(private readonly port: Port) {
    const opened = promised()
    const ready = promised()
    this.opened = opened.promise
    this.ready = ready.promise
    this.report = { opened: opened.call, ready: ready.call }
    port.on('message', (report) => this.receive(report as WriterReport))
  }

  /** A port by which another thread reaches the same writer; to be transferred there. */
  share(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.port.postMessage({ share: port1 } satisfies WriterRequest, [port1])
    return port2
  }

  /** @param plain What the thread makes the rules of. */
  deriveBy(plain: unknown): void {
    this.port.postMessage({ deriveBy: plain } satisfies WriterRequest)
  }

  /** The thread has ended: nothing is answered any more. */
  end(cause: unknown): void {
    this.failure = new StoreUnavailableError(cause)
    for (const { reject } of this.calls.values()) reject(this.failure)
    this.calls.clear()
    for (const { reject } of Object.values(this.report)) reject(this.failure)
  }

  record(
    transactions: readonly TransactionRecord[],
    options: RecordTransactions = {},
    place?: Place,
  ): Result<'record'> {
    const bytes = transactions.reduce((sum, { raw }) => sum + raw.length, 0)
    const { patience, ...others } = { weight: bytes, ...place }
    const args = [transactions, options, others]
    if (patience === undefined) return this.call('record', args)
    const { since } = this
    return withPatience(({ buffer }) => this.call('record', args, buffer), { patience, since })
  }

  disprove(block: Block): Result<'disprove'> {
    return this.call('disprove', [block])
  }

  sightings(records: readonly SightingRecord[]): Result<'sightings'> {
    return this.call('sightings', [records])
  }

  block(record: BlockedRecord): Result<'block'> {
    return this.call('block', [record])
  }

  unblock(subject: BlockedSubject): Result<'unblock'> {
    return this.call('unblock', [subject])
  }

  evict(outpoint: Outpoint): Result<'evict'> {
    return this.call('evict', [outpoint])
  }

  setting(name: string, value: string): Result<'setting'> {
    return this.call('setting', [name, value])
  }

  replaceHeaders(change: Parameters<HeaderChain['replaceFrom']>[0]): Result<'replaceHeaders'> {
    return this.call('replaceHeaders', [change])
  }

  addHeadersBelow(change: Parameters<HeaderChain['addBelow']>[0]): Result<'addHeadersBelow'> {
    return this.call('addHeadersBelow', [change])
  }

  clearHeaders(): Result<'clearHeaders'> {
    return this.call('clearHeaders', [])
  }

  interaction(host: string, topic: string, since: number): Promise<void> {
    return this.call('interaction', [host, topic, since])
  }

  hold(submission: HeldSubmission, limits: { maxCount: number }): Promise<void> {
    return this.call('hold', [submission, limits])
  }

  release(txid: string): Promise<void> {
    return this.call('release', [txid])
  }

  postpone(outpoints: readonly Outpoint[], attempt: AncestorTry): Promise<void> {
    return this.call('postpone', [outpoints, attempt])
  }

  keepHook(failed: FailedHook): Promise<void> {
    return this.call('keepHook', [failed])
  }

  releaseHook(failed: FailedHook): Promise<void> {
    return this.call('releaseHook', [failed])
  }

  /** Closes the writer itself, for all its clients. */
  close(): Promise<void> {
    this.onClose()
    return this.call('close', [])
  }

  private call<Method extends WriterMethod>(
    method: Method,
    args: unknown[],
    claim?: SharedArrayBuffer,
  ): Result<Method> {
    const id = this.nextId++
    const answer = new Promise<unknown>((resolve, reject) => {
      if (this.failure !== undefined) throw this.failure
      this.calls.set(id, { resolve, reject })
      this.port.postMessage({ id, method, args, ...(claim && { claim }) } satisfies WriterRequest)
    })
    return answer as Result<Method>
  }

  private receive(report: WriterReport): void {
    if ('since' in report) {
      this.since = new BusySince(report.since)
      this.report.ready.resolve(undefined)
    } else if ('status' in report) {
      this.status = report.status
      if (report.status.state === 'equal') this.report.opened.resolve(undefined)
    } else if ('notOpened' in report) this.report.opened.reject(revivedError(report.notOpened))
    else {
      const call = this.calls.get(report.id)
      this.calls.delete(report.id)
      if ('done' in report) call?.resolve(report.done)
      else call?.reject(revivedError(report.failed))
    }
  }
}

/** A promise, and what decides it. Nobody has to wait for it. */
function promised(): { promise: Promise<void>; call: Call } {
  let call: Call | undefined
  const promise = new Promise<void>((resolve, reject) => {
    call = { resolve: resolve as Call['resolve'], reject }
  })
  promise.catch(() => {})
  return { promise, call: call as Call }
}
