import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { steadyTime } from '../../../backend/src/protocol/monotonic.js'
import type { Writer } from '../../../backend/src/writer/writer.js'
import { AnswerError } from '../../gateway/http/errors.js'

export interface IndexStatus {
  /**
   * Being derived, having all facts, or waiting for the thread that writes; of a log that others write, too: not heard of for a while,
   * or for long.
   */
  state: 'rebuilding' | 'equal' | 'resuming' | 'behind' | 'stale'
  /** The share of the log that it has, from 0 to 1. */
  done: number
}

/** @throws AnswerError if nothing can be written: during a rebuild, or until the thread that writes was started again. */
function assertComplete(status: IndexStatus): void {
  const reason = notReadyReason(status)
  if (reason !== undefined && status.state !== 'behind') throw new AnswerError('NOT_READY', reason)
}

/** The answer while the index is rebuilt, or may lack what others have written; undefined at any other time. */
export function incompleteError(status: IndexStatus): AnswerError | undefined {
  const reason = notReadyReason(status)
  const isWrong = status.state === 'rebuilding' || status.state === 'stale'
  return isWrong && reason !== undefined ? new AnswerError('NOT_READY', reason) : undefined
}

/** Why a host is not ready, if its index may lack facts. */
export function notReadyReason({ state, done }: IndexStatus): string | undefined {
  if (state === 'rebuilding') return `rebuilding the index: ${Math.ceil((1 - done) * 100)} % left`
  if (state === 'resuming') return 'the thread that writes is started again'
  if (state === 'behind' || state === 'stale') return 'the log cannot be read'
  return undefined
}

/** How long a start waits, in milliseconds, before the server listens and says how far the index is. */
const PATIENCE = 2000
/**
 * For how many milliseconds a log that others write may not be heard of until this host is not ready, and until it answers nothing:
 * something may have been blocked.
 */
const BEHIND = 10_000
const STALE = 60_000
/** How often the progress of a rebuild is logged, in milliseconds. */
const LOG_INTERVAL = 5000

/** The index of a store of facts: its writer applies what it lacks of the log, beside the server, which answers 503 meanwhile. */
export class NodeIndex {
  private timer: NodeJS.Timeout | undefined
  /** Then readers may go on with it, whatever the writer does. */
  private wasComplete = false

  constructor(
    private readonly options: {
      writer: Pick<Writer, 'status' | 'opened'>
      facts: () => number
      logger: Logger
    },
  ) {}

  /**
   * Waits until it is complete, though not for long: most starts find nothing to apply.
   *
   * @throws what the writer threw if it cannot be derived.
   */
  async open(): Promise<void> {
    // A rebuild that fails later is logged by `start`.
    const complete = this.options.writer.opened
    complete.then(
      () => {
        this.wasComplete = true
      },
      () => {},
    )
    const over = new AbortController()
    const moment = sleep(PATIENCE, undefined, { ref: false, signal: over.signal }).catch(() => {})
    await Promise.race([complete, moment]).finally(() => over.abort())
  }

  get status(): IndexStatus {
    const { state, done, isEmptied = false, heardAt = Number.POSITIVE_INFINITY } = this.options.writer.status
    const age = steadyTime() - heardAt
    if (state !== 'equal' && (isEmptied || !this.wasComplete)) return { state: 'rebuilding', done }
    if (age >= STALE) return { state: 'stale', done }
    if (state !== 'equal') return { state: 'resuming', done }
    return { state: age < BEHIND ? 'equal' : 'behind', done }
  }

  /** About how many facts are left. */
  async lag(): Promise<number> {
    const { state, done } = this.status
    return state === 'equal' ? 0 : Math.ceil((1 - done) * this.options.facts())
  }

  /** Logs how far it is, until it is complete; also once the thread of the writer was started again. */
  start(): void {
    const { writer, logger } = this.options
    if (this.timer !== undefined || this.status.state === 'equal') return
    this.timer = setInterval(() => {
      logger.info({ done: Math.round(this.status.done * 100) / 100 }, 'rebuilding the index')
    }, LOG_INTERVAL).unref()
    void writer.opened
      .then(() => logger.info('the index has all facts'))
      // The writer says it to everybody who writes.
      .catch((error: unknown) =>
        logger.error({ err: error }, 'the index cannot be derived: see `minetree check`'),
      )
      .finally(() => {
        clearInterval(this.timer)
        this.timer = undefined
      })
  }

  /** Waits until it is complete. */
  async run(): Promise<void> {
    await this.options.writer.opened
  }

  async close(): Promise<void> {
    clearInterval(this.timer)
  }
}

/** The writes of this host. Each is whole in itself, and its order is that of the writer of the store. */
export class Writes {
  /** See {@link assertComplete}: what is decided by half an index is wrong. */
  index: Pick<NodeIndex, 'status'> | undefined
  /** Called after each write. */
  onWritten: () => void = () => {}

  async run<Result>(write: () => Promise<Result>): Promise<Result> {
    try {
      if (this.index !== undefined) assertComplete(this.index.status)
      return await write()
    } finally {
      this.onWritten()
    }
  }
}
