import { type MessagePort, Worker } from 'node:worker_threads'
import { Semaphore } from 'async-mutex'
import { type Logger, pino } from 'pino'
import { Calls, onThreadEnd, revivedError } from '../../../backend/src/writer/calls.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import { ConflictError } from './errors.js'
import { shareHeaders } from './open-headers.js'
import type { Overlay } from './overlay.js'
import { offloadingExpensive, type ScriptRunner } from './script-scheduler.js'
import type { Submit } from './submission-queue.js'
import type { LogRecord, PlainRefusal, WorkerData, WorkerReport } from './submission-worker.js'

/** From this length in bytes, a BEEF is large: parsing and hashing it blocks a thread, the longer the larger it is. */
export const LARGE = 64 * 1024
const MiB = 1024 * 1024
/** How many MiB of large submissions the worker thread holds parsed at once. One is always accepted. */
const LARGE_AT_ONCE = 128
/**
 * The heap of the worker thread: the interpreter takes eight bytes for each byte of a script, and the longest script is a body.
 * If it runs out, the thread ends rather than the process.
 */
const MAX_HEAP_MIB = 768
/** The thread's heap for short-lived objects. The default is twice as much, which a thread that follows the chain fills. */
const YOUNG_HEAP_MIB = 24
/** The heap that an input of a transaction takes while it is written. */
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
 * Submits large submissions, and those without a waiting client, in a worker thread, so that readers are answered meanwhile. That
 * thread also runs the expensive scripts of small submissions.
 */
export class LargeSubmissions {
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

  /** Submits in the worker, whatever the size: for following the chain, not for clients, who wait for an answer. */
  readonly submitInWorker: Submit = async (submission) => {
    const { writes } = this.options.node.overlay.engine
    const weight = Math.min(Math.ceil(submission.beef.length / MiB), LARGE_AT_ONCE)
    const submit = (thread: WorkerThread) =>
      writes.run(() => {
        // A copy, without the rest of its buffer: it is transferred, but the submission may have to be sent again.
        const beef = Uint8Array.from(submission.beef)
        return thread.call('submit', [{ ...submission, beef }], [beef.buffer])
      })
    return await this.capacity.runExclusive(() => this.withThread(submit), weight)
  }

  /** Runs the scripts of small submissions: cheap ones in this thread, others in the worker. */
  readonly runScripts: ScriptRunner = offloadingExpensive(async (job) => {
    await this.withThread((thread) => thread.call('runScripts', [job]))
  })

  async close(): Promise<void> {
    const { thread } = this
    this.thread = undefined
    clearTimeout(this.idle)
    await thread?.end()
  }

  /** Uses the thread; starts it if there is none, and ends it when it has been idle. */
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

/** Restores an error from the worker from its plain data. */
function revived({ lost, answer, ...failed }: PlainRefusal): Error {
  if (lost !== undefined) return new ConflictError(lost)
  if (answer === undefined) return revivedError(failed)
  const { code, message, ...details } = answer
  return new AnswerError(code, message, details)
}

class WorkerThread {
  private readonly worker: Worker
  private readonly calls = new Calls(revived)

  constructor(options: LargeSubmissionsOptions & { onEnd: () => void }) {
    const { config, node, logger, onEnd } = options
    const heap = Math.ceil((config.limits.maxProvenInputs * BYTES_PER_INPUT) / MiB)
    const { headers } = node.overlay.proofs
    const headersPort = headers && shareHeaders(headers)
    const writerPort = node.shareWriter()
    if (writerPort === undefined) throw new Error('the writer has no thread that takes writes of another')
    this.worker = new Worker(options.worker, {
      // The thread asks the main thread about headers.
      workerData: {
        config: { ...config, givenTracker: undefined },
        headersPort,
        writerPort,
      } satisfies WorkerData,
      transferList: [headersPort, writerPort].filter((port) => port !== undefined),
      resourceLimits: {
        maxOldGenerationSizeMb: Math.max(MAX_HEAP_MIB, heap),
        maxYoungGenerationSizeMb: YOUNG_HEAP_MIB,
      },
    })
    this.worker.on('message', (report: WorkerReport) => {
      if ('record' in report) return logRelayed(report.record, logger)
      if ('event' in report) return node.overlay.emit(report.event)
      this.calls.take(report)
    })
    onThreadEnd(this.worker, (_, cause) => {
      onEnd()
      // The crash says nothing about the submissions, and the next one gets a new thread.
      const message = 'the worker thread for large submissions has crashed; try again'
      this.calls.refuse(new AnswerError('NOT_READY', message, { cause }))
    })
  }

  async call(method: string, args: unknown[], transfer: ArrayBuffer[] = []): Promise<never> {
    return (await this.calls.ask(this.worker, { method, args }, transfer)) as never
  }

  async end(): Promise<void> {
    await this.worker.terminate()
  }
}

/** Logs a line of the worker thread here. */
export function logRelayed({ level, msg, ...record }: LogRecord, logger: Logger): void {
  const { time: _time, pid: _pid, hostname: _hostname, ...fields } = record
  const label = pino.levels.labels[level] as 'info' | undefined
  logger[label ?? 'info'](fields, msg)
}
