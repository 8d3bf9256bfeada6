import { type MessagePort, Worker } from 'node:worker_threads'
import type { STEAK } from '@bsv/sdk'
import { Semaphore } from 'async-mutex'
import { type Logger, pino } from 'pino'
import { type Answer, AnswerError } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import { ConflictError, workerEnded } from './errors.js'
import type { Overlay } from './overlay.js'
import { offloadingExpensive, type ScriptRunner } from './script-scheduler.js'
import { shareHeaders } from './shared-headers.js'
import type { Submission, Submit } from './submission-queue.js'
import type {
  LogRecord,
  SubmissionTask,
  WorkerData,
  WorkerReport,
  WorkerRequest,
} from './submission-worker.js'

/** From how many bytes on a BEEF is large: parsing and hashing it blocks a thread, the longer the larger it is. */
export const LARGE = 64 * 1024
const MiB = 1024 * 1024
/** How many MiB of large ones the worker thread holds parsed at once. One is always accepted. */
const LARGE_AT_ONCE = 128
/**
 * The heap of the worker thread: the interpreter takes an eighth of a script, and the longest script is a body. If it runs
 * out, the thread ends, and not the process.
 */
const MAX_HEAP_MIB = 768
/** The heap of what is short-lived there. The default is twice as much, and a thread that follows the chain fills it. */
const YOUNG_HEAP_MIB = 24
/** What an input of a transaction takes of it while it is written. */
const BYTES_PER_INPUT = 2560
/** How long an idle thread is kept, in milliseconds: starting one takes a while and much memory. */
const IDLE = 10_000

/** The worker thread, compiled beside this module or bundled with it. */
export const SUBMISSION_WORKER = new URL('./submission-worker.js', import.meta.url)

interface LargeSubmissionsOptions {
  config: Config
  node: {
    overlay: Overlay
    shareWriter(): MessagePort | undefined
  }
  logger: Logger
  worker: URL
}

/**
 * Verifies and admits large submissions in a worker thread, and those that nobody waits for, so that readers are answered
 * meanwhile: there, no reader waits for the disk at the end of a write. That thread also runs the expensive scripts of small
 * submissions.
 */
export class LargeSubmissions {
  /** Whether a submission that lost may win if it is written once more. */
  mayWin: (error: unknown) => Promise<boolean> = () => Promise.resolve(false)
  private readonly capacity = new Semaphore(LARGE_AT_ONCE)
  private thread: WorkerThread | undefined
  private tasks = 0
  private idle: NodeJS.Timeout | undefined

  constructor(private readonly options: LargeSubmissionsOptions) {}

  /** Submits small transactions in this thread, and large ones in the worker. */
  readonly submit: Submit = (submission) => {
    const { engine } = this.options.node.overlay
    return submission.beef.length < LARGE ? engine.submit(submission) : this.submitInWorker(submission)
  }

  /** Submits in the worker, whatever the size: for those who follow the chain, not for clients, who wait for an answer. */
  readonly submitInWorker: Submit = async (submission) => {
    const weight = Math.min(Math.ceil(submission.beef.length / MiB), LARGE_AT_ONCE)
    return await this.capacity.runExclusive(
      () => this.withThread((thread) => this.submitIn(thread, submission)),
      weight,
    )
  }

  /** Runs the scripts of small submissions: cheap ones in this thread, others in the worker. */
  readonly runScripts: ScriptRunner = offloadingExpensive(async (job) => {
    await this.withThread((thread) => thread.ask({ kind: 'run scripts', job }))
  })

  async close(): Promise<void> {
    const { thread } = this
    this.thread = undefined
    clearTimeout(this.idle)
    await thread?.end()
  }

  private async submitIn(thread: WorkerThread, submission: Submission): Promise<STEAK> {
    const id = await thread.verify(submission)
    const { writes } = this.options.node.overlay.engine
    const write = async (): Promise<STEAK> => await writes.run(() => thread.admit(id))
    try {
      return await write()
    } catch (error) {
      if (!(await this.mayWin(error))) throw error
      return await write()
    } finally {
      thread.drop(id)
    }
  }

  /** Uses the thread, which is started if there is none, and ended when it has been idle. */
  private async withThread<Result>(use: (thread: WorkerThread) => Promise<Result>): Promise<Result> {
    clearTimeout(this.idle)
    this.tasks++
    this.thread ??= this.startThread()
    try {
      return await use(this.thread)
    } finally {
      this.tasks--
      if (this.tasks === 0) this.idle = setTimeout(() => void this.close(), IDLE).unref()
    }
  }

  private startThread(): WorkerThread {
    const onEnd = (): void => {
      if (this.thread === thread) this.thread = undefined
    }
    const thread = new WorkerThread({ ...this.options, onEnd })
    return thread
  }
}

/** An answer that was given in the thread. */
function relayed({ code, message, ...details }: Answer): AnswerError {
  return new AnswerError(code, message, details)
}

class WorkerThread {
  private readonly worker: Worker
  private readonly calls = new Map<
    number,
    { resolve: (result: STEAK | undefined) => void; reject: (error: Error) => void }
  >()
  private nextId = 0
  private hasEnded = false

  constructor(options: LargeSubmissionsOptions & { onEnd: () => void }) {
    const { config, node, logger, onEnd } = options
    const heap = Math.ceil((config.limits.maxProvenInputs * BYTES_PER_INPUT) / MiB)
    const { headers } = node.overlay.proofs
    const headersPort = headers && shareHeaders(headers)
    const writerPort = node.shareWriter()
    if (writerPort === undefined) throw new Error('the writer has no thread that takes writes of another')
    this.worker = new Worker(options.worker, {
      workerData: { config, headersPort, writerPort } satisfies WorkerData,
      transferList: [headersPort, writerPort].filter((port) => port !== undefined),
      resourceLimits: {
        maxOldGenerationSizeMb: Math.max(MAX_HEAP_MIB, heap),
        maxYoungGenerationSizeMb: YOUNG_HEAP_MIB,
      },
    })
    this.worker.on('message', (report: WorkerReport) => {
      if ('record' in report) return logRelayed(report.record, logger)
      if ('event' in report) return node.overlay.emit(report.event)
      const call = this.calls.get(report.id)
      this.calls.delete(report.id)
      if ('done' in report) call?.resolve(report.done)
      else if ('lost' in report) call?.reject(new ConflictError(report.lost))
      else call?.reject('answer' in report ? relayed(report.answer) : report.fault)
    })
    let cause: unknown
    this.worker.on('error', (error) => {
      cause = error
    })
    this.worker.on('exit', (code) => {
      this.hasEnded = true
      onEnd()
      for (const { reject } of this.calls.values()) reject(workerEnded(code, cause))
    })
  }

  /** Returns what {@link admit} takes. */
  async verify(submission: Submission): Promise<number> {
    const id = this.nextId
    const { buffer, byteLength } = submission.beef
    // A body with a buffer of its own is transferred; part of a buffer is copied.
    const isTransferable = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    await this.ask({ kind: 'verify', submission }, isTransferable ? [buffer] : [])
    return id
  }

  async admit(verified: number): Promise<STEAK> {
    const admitted = await this.ask({ kind: 'admit', verified })
    if (admitted === undefined) throw new Error('the worker thread admitted a submission without a result')
    return admitted
  }

  /** Forgets a verified submission. */
  drop(verified: number): void {
    if (this.hasEnded) return
    this.worker.postMessage({ kind: 'drop', verified, id: this.nextId++ } satisfies WorkerRequest)
  }

  async ask(task: SubmissionTask, transfer: ArrayBuffer[] = []): Promise<STEAK | undefined> {
    const id = this.nextId++
    return await new Promise((resolve, reject) => {
      if (this.hasEnded) throw workerEnded()
      this.calls.set(id, { resolve, reject })
      this.worker.postMessage({ ...task, id } satisfies WorkerRequest, transfer)
    })
  }

  async end(): Promise<void> {
    await this.worker.terminate()
  }
}

/** Logs here what the worker thread logged. */
export function logRelayed({ level, msg, ...record }: LogRecord, logger: Logger): void {
  const { time: _time, pid: _pid, hostname: _hostname, ...fields } = record
  const label = pino.levels.labels[level] as 'info' | undefined
  logger[label ?? 'info'](fields, msg)
}
