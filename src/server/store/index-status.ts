import type { Logger } from 'pino'
import { steadyTime } from '../../../backend/src/protocol/monotonic.js'
import type { Writer } from '../../../backend/src/writer/writer.js'
import { unlessLate } from '../../chain/sources/background.js'
import { AnswerError } from '../../gateway/http/errors.js'

export interface IndexStatus {
  /**
   * `rebuilding`: being derived; `equal`: has all facts; `resuming`: waits for the writer thread; `behind`, `stale`: a shared log has
   * not been heard of for a while, or for long.
   */
  state: 'rebuilding' | 'equal' | 'resuming' | 'behind' | 'stale'
  /** The share of the log that is applied, from 0 to 1. */
  done: number
  /** Why this gateway has to be restarted: the log has other rules than it was started with. */
  outdated?: string
}

/** @throws AnswerError if nothing can be written: during a rebuild, or until the writer thread has restarted. */
function assertComplete(status: IndexStatus): void {
  const reason = notReadyReason(status)
  if (reason !== undefined && (status.state !== 'behind' || status.outdated))
    throw new AnswerError('NOT_READY', reason)
}

/** The error to answer with while the index is rebuilt, or may lack others' writes; undefined at any other time. */
export function incompleteError(status: IndexStatus): AnswerError | undefined {
  const reason = notReadyReason(status)
  const isWrong = status.state === 'rebuilding' || status.state === 'stale'
  return isWrong && reason !== undefined ? new AnswerError('NOT_READY', reason) : undefined
}

export function notReadyReason({ state, done, outdated }: IndexStatus): string | undefined {
  if (outdated !== undefined) return outdated
  if (state === 'rebuilding') return `rebuilding the index: ${Math.ceil((1 - done) * 100)} % left`
  if (state === 'resuming') return 'the writer thread is restarting'
  if (state === 'behind' || state === 'stale') return 'the log cannot be read'
  return undefined
}

/** How long a start waits, in milliseconds, before the server listens and reports the progress of the index. */
const PATIENCE = 2000
/**
 * How many milliseconds a shared log may not be heard of before this host is not ready, and before it answers nothing: something may
 * have been blocked.
 */
const BEHIND = 10_000
const STALE = 60_000
/** How often the progress of a rebuild is logged, in milliseconds. */
const LOG_INTERVAL = 5000

/** The index of a store: its writer applies the facts that it lacks, while the server answers 503. */
export class NodeIndex {
  private timer: NodeJS.Timeout | undefined
  /** Once true, readers can use the index whatever the writer does. */
  private wasComplete = false

  constructor(
    private readonly options: {
      writer: Pick<Writer, 'status' | 'opened'>
      facts: () => number
      logger: Logger
    },
  ) {}

  /**
   * Waits until the index is complete, up to a limit: most starts find nothing to apply.
   *
   * @throws the error of the writer if the index cannot be derived.
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
    await unlessLate(complete, PATIENCE)
  }

  get status(): IndexStatus {
    const { status } = this.options.writer
    const { state, done, isEmptied = false, heardAt = Number.POSITIVE_INFINITY, outdated } = status
    const known = { done, ...(outdated !== undefined && { outdated }) }
    const age = steadyTime() - heardAt
    if (state !== 'equal' && (isEmptied || !this.wasComplete)) return { state: 'rebuilding', ...known }
    if (age >= STALE) return { state: 'stale', ...known }
    if (state !== 'equal') return { state: 'resuming', ...known }
    return { state: age < BEHIND && outdated === undefined ? 'equal' : 'behind', ...known }
  }

  /** The approximate number of facts left to apply. */
  async lag(): Promise<number> {
    const { state, done } = this.status
    return state === 'equal' ? 0 : Math.ceil((1 - done) * this.options.facts())
  }

  /** Logs the progress until the index is complete; call it again when the writer thread was restarted. */
  start(): void {
    const { writer, logger } = this.options
    if (this.timer !== undefined || this.status.state === 'equal') return
    this.timer = setInterval(() => {
      logger.info({ done: Math.round(this.status.done * 100) / 100 }, 'rebuilding the index')
    }, LOG_INTERVAL).unref()
    void writer.opened
      .then(() => logger.info('the index has all facts'))
      // The writer reports it to everybody who writes.
      .catch((error: unknown) =>
        logger.error({ err: error }, 'the index cannot be derived: see `minetree check`'),
      )
      .finally(() => {
        clearInterval(this.timer)
        this.timer = undefined
      })
  }

  /** Waits until the index is complete. */
  async run(): Promise<void> {
    await this.options.writer.opened
  }

  async close(): Promise<void> {
    clearInterval(this.timer)
  }
}

/** The writes of this host. Each is atomic; the store's writer orders them. */
export class Writes {
  /** See {@link assertComplete}: decisions from an incomplete index are wrong. */
  index: Pick<NodeIndex, 'status'> | undefined
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
