import { Worker } from 'node:worker_threads'
import type { STEAK } from '@bsv/sdk'
import { type Logger, pino } from 'pino'
import { type Answer, AnswerError, type ErrorCode } from '../gateway/error-response.js'
import type { Config } from './config.js'
import type { Node } from './node.js'
import type { OverlayEvent } from './overlay.js'
import type { LogRecord, SubmissionReport, SubmissionRequest } from './submission-worker.js'
import { type Submit, submitTo } from './submit.js'

/** From how many bytes on a BEEF is large: parsing and hashing one holds a thread up, the longer the larger it is. */
const LARGE = 1024 * 1024
/** How long a thread without work is kept, in milliseconds: it takes a while to start, and much memory. */
const IDLE = 10_000

/** What the other thread answers with an error. */
class RelayedError extends AnswerError {
  override readonly name = 'RelayedError'
  readonly status: number
  readonly code: ErrorCode
  declare readonly data?: Record<string, unknown>
  declare readonly headers?: Record<string, string>

  constructor({ status, code, message, data, headers }: Answer) {
    super(message)
    this.status = status
    this.code = code
    Object.assign(this, { data, headers })
  }
}

/**
 * Submissions, of which the large ones are admitted in a thread of their own, so that readers are answered meanwhile. They
 * still come one at a time: whoever has the turn of the engine here writes, in this thread or in the other.
 */
export class LargeSubmissions {
  private readonly here: Submit
  private thread: SubmissionThread | undefined
  private idle: NodeJS.Timeout | undefined

  constructor(private readonly options: { config: Config; node: Node; logger: Logger; worker: URL }) {
    this.here = submitTo(options.node.overlay.engine)
  }

  readonly submit: Submit = async (submitted) => {
    if (submitted.beef.length < LARGE) return await this.here(submitted)
    const { overlay, graph } = this.options.node
    return await overlay.engine.exclusively(async () => {
      clearTimeout(this.idle)
      this.thread ??= this.startThread()
      try {
        const { thread } = this
        return await graph.writing(() => thread.submit(submitted))
      } finally {
        await graph.readBlocked()
        this.idle = setTimeout(() => void this.close(), IDLE).unref()
      }
    })
  }

  async close(): Promise<void> {
    const { thread } = this
    this.thread = undefined
    await thread?.end()
  }

  private startThread(): SubmissionThread {
    const thread = new SubmissionThread({
      ...this.options,
      onEnd: () => {
        if (this.thread === thread) this.thread = undefined
      },
    })
    return thread
  }
}

interface Waiting {
  resolve(steak: STEAK): void
  reject(error: Error): void
}

/** The other thread, from here. */
class SubmissionThread {
  private readonly worker: Worker
  private readonly waiting = new Map<number, Waiting>()
  private count = 0

  constructor(options: { config: Config; node: Node; logger: Logger; worker: URL; onEnd: () => void }) {
    const { config, node, logger, onEnd } = options
    this.worker = new Worker(options.worker, { workerData: config })
    this.worker.on('message', (report: SubmissionReport) => {
      if ('record' in report) relay(report.record, logger)
      else if ('event' in report) node.overlay.tell(report.event)
      else this.settle(report)
    })
    let cause: unknown
    this.worker.on('error', (error) => {
      cause = error
    })
    this.worker.on('exit', (code) => {
      onEnd()
      for (const { reject } of this.waiting.values())
        reject(new Error(`the thread that admits large transactions has ended with ${code}`, { cause }))
    })
  }

  async submit(submitted: Parameters<Submit>[0]): Promise<STEAK> {
    const id = this.count++
    return await new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject })
      this.worker.postMessage({ id, submitted } satisfies SubmissionRequest)
    })
  }

  async end(): Promise<void> {
    await this.worker.terminate()
  }

  private settle(report: Exclude<SubmissionReport, { record: LogRecord } | { event: OverlayEvent }>): void {
    const waiting = this.waiting.get(report.id)
    this.waiting.delete(report.id)
    if ('steak' in report) waiting?.resolve(report.steak)
    else if ('answer' in report) waiting?.reject(new RelayedError(report.answer))
    else waiting?.reject(new Error(report.fault))
  }
}

/** What the other thread would have logged is logged here. */
function relay({ level, msg, ...record }: LogRecord, logger: Logger): void {
  const { time: _time, pid: _pid, hostname: _hostname, ...fields } = record
  const label = pino.levels.labels[level] as 'info' | undefined
  logger[label ?? 'info'](fields, msg)
}
