import { Worker } from 'node:worker_threads'
import type { STEAK } from '@bsv/sdk'
import { Semaphore } from 'async-mutex'
import { type Logger, pino } from 'pino'
import { type Answer, AnswerError, type ErrorCode, NotReadyError } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import type { Node } from '../node.js'
import type { OverlayEvent } from './overlay.js'
import { submissionPriority } from './overlay-engine.js'
import { handingOver, type ScriptRunner } from './script-runner.js'
import type { LogRecord, SubmissionReport, SubmissionRequest, SubmissionTask } from './submission-worker.js'
import { type Submit, type Submitted, submitTo } from './submit.js'

/** From how many bytes on a BEEF is large: parsing and hashing one holds a thread up, the longer the larger it is. */
const LARGE = 64 * 1024
const MiB = 1024 * 1024
/** How many MiB of large ones are in the other thread at once, where they are held parsed. One alone always is. */
const LARGE_AT_ONCE = 128
/**
 * What the objects of the thread may take: the interpreter holds a byte of a script in eight, and the longest script is a
 * body. Over it the thread ends, and not the process.
 */
const MAX_HEAP_MIB = 768
/** Of it, what an input of a transaction takes while it is written. */
const BYTES_OF_INPUT = 2560
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

/** It says nothing about the submission: the next one gets a new thread. */
class ThreadEndedError extends NotReadyError {
  override readonly headers = { 'Retry-After': '5' }

  constructor(code?: number, cause?: unknown) {
    super('the worker thread for large submissions has crashed; try again')
    this.cause = cause ?? `it exited with code ${code}`
  }
}

/**
 * Submissions, of which the large ones are verified and admitted in a thread of their own, so that readers are answered
 * meanwhile. That thread runs the scripts of small ones, too, where they take long. Verifying needs no turn; then they still
 * come one at a time: whoever has the turn of the engine here writes, in this thread or in the other.
 */
export class LargeSubmissions {
  private readonly here: Submit
  private readonly room = new Semaphore(LARGE_AT_ONCE)
  private thread: SubmissionThread | undefined
  private tasks = 0
  private idle: NodeJS.Timeout | undefined

  constructor(private readonly options: { config: Config; node: Node; logger: Logger; worker: URL }) {
    this.here = submitTo(options.node.overlay.engine)
  }

  readonly submit: Submit = async (submitted) => {
    if (submitted.beef.length < LARGE) return await this.here(submitted)
    const weight = Math.min(Math.ceil(submitted.beef.length / MiB), LARGE_AT_ONCE)
    return await this.room.runExclusive(() => this.working((thread) => this.take(submitted, thread)), weight)
  }

  /** Runs the scripts of small submissions: in this thread what takes little, and in the other what takes more. */
  readonly runScripts: ScriptRunner = handingOver(async (job) => {
    await this.working((thread) => thread.ask({ kind: 'run scripts', job }))
  })

  async close(): Promise<void> {
    const { thread } = this
    this.thread = undefined
    clearTimeout(this.idle)
    await thread?.end()
  }

  private async take(submitted: Submitted, thread: SubmissionThread): Promise<STEAK> {
    const { overlay, graph } = this.options.node
    const { beef, ahead } = submitted
    const priority = submissionPriority({ bytes: beef.length, ahead })
    const verified = await thread.verify(submitted)
    const admit = async (): Promise<STEAK> => {
      try {
        return await graph.writing(() => thread.admit(verified))
      } finally {
        await graph.blocklist.refresh()
      }
    }
    try {
      return await overlay.engine.exclusively(admit, priority)
    } finally {
      thread.drop(verified)
    }
  }

  /** Does something with the thread, which is kept for as long as there is something to do. */
  private async working<Result>(work: (thread: SubmissionThread) => Promise<Result>): Promise<Result> {
    clearTimeout(this.idle)
    this.tasks++
    this.thread ??= this.startThread()
    try {
      return await work(this.thread)
    } finally {
      this.tasks--
      if (this.tasks === 0) this.idle = setTimeout(() => void this.close(), IDLE).unref()
    }
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

/** What the objects of the thread may take, in MiB: more where the operator lets transactions have more inputs. */
function heapFor(inputs: number): number {
  return Math.max(MAX_HEAP_MIB, Math.ceil((inputs * BYTES_OF_INPUT) / MiB))
}

interface Waiting {
  resolve(done: STEAK | undefined): void
  reject(error: Error): void
}

/** The other thread, from here. */
class SubmissionThread {
  private readonly worker: Worker
  private readonly waiting = new Map<number, Waiting>()
  private count = 0
  private hasEnded = false

  constructor(options: { config: Config; node: Node; logger: Logger; worker: URL; onEnd: () => void }) {
    const { config, node, logger, onEnd } = options
    this.worker = new Worker(options.worker, {
      workerData: config,
      resourceLimits: { maxOldGenerationSizeMb: heapFor(config.limits.maxProvenInputs) },
    })
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
      this.hasEnded = true
      onEnd()
      for (const { reject } of this.waiting.values()) reject(new ThreadEndedError(code, cause))
    })
  }

  /** @returns What {@link admit} takes. */
  async verify(submitted: Submitted): Promise<number> {
    const id = this.count
    const { buffer, byteLength } = submitted.beef
    // A body has a buffer of its own, which goes over as it is; a part of one is copied.
    const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    await this.ask({ kind: 'verify', submitted }, isWhole ? [buffer] : [])
    return id
  }

  async admit(verified: number): Promise<STEAK> {
    const steak = await this.ask({ kind: 'admit', verified })
    if (steak === undefined) throw new Error('the worker thread for large submissions returned no result')
    return steak
  }

  /** Forgets what was verified, if it was not admitted. */
  drop(verified: number): void {
    if (this.hasEnded) return
    this.worker.postMessage({ kind: 'drop', verified, id: this.count++ } satisfies SubmissionRequest)
  }

  async ask(task: SubmissionTask, given: ArrayBuffer[] = []): Promise<STEAK | undefined> {
    const id = this.count++
    return await new Promise((resolve, reject) => {
      if (this.hasEnded) throw new ThreadEndedError()
      this.waiting.set(id, { resolve, reject })
      this.worker.postMessage({ ...task, id } satisfies SubmissionRequest, given)
    })
  }

  async end(): Promise<void> {
    await this.worker.terminate()
  }

  private settle(report: Exclude<SubmissionReport, { record: LogRecord } | { event: OverlayEvent }>): void {
    const waiting = this.waiting.get(report.id)
    this.waiting.delete(report.id)
    if ('done' in report) waiting?.resolve(report.done)
    else if ('refusal' in report) waiting?.reject(new Error(report.refusal))
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
