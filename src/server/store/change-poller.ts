import type { Logger } from 'pino'

/** Between two polls, and for how long the result of a poll is fresh, in milliseconds. */
const INTERVAL = 250
const FRESH_FOR = 750

export interface ChangePollerOptions {
  /** Reads how many writes there were. */
  writes: () => Promise<number>
  /** Called and awaited if there were writes since the last poll. */
  onWrite: () => Promise<void>
  logger: Logger
}

/**
 * Polls a shared database for writes of other processes, so that caches are dropped within a second. While the database does
 * not answer, no cache is fresh.
 */
export class ChangePoller {
  private lastCount: number | undefined
  private freshSince = Number.NEGATIVE_INFINITY
  private timer: NodeJS.Timeout | undefined
  private polling: Promise<void> = Promise.resolve()
  private stopped = false
  private isDown = false

  constructor(private readonly options: ChangePollerOptions) {}

  /** Whether caches were up to date less than a second ago. */
  get isFresh(): boolean {
    return performance.now() - this.freshSince < FRESH_FOR
  }

  /** Polls at once, and then until {@link stop}. @throws what the database throws the first time. */
  async start(): Promise<void> {
    await this.poll()
    this.schedule()
  }

  async stop(): Promise<void> {
    this.stopped = true
    clearTimeout(this.timer)
    await this.polling
  }

  private schedule(): void {
    if (this.stopped) return
    this.timer = setTimeout(() => {
      this.polling = this.tryPoll().finally(() => this.schedule())
    }, INTERVAL).unref()
  }

  private async poll(): Promise<void> {
    const at = performance.now()
    const writes = await this.options.writes()
    if (writes !== this.lastCount) await this.options.onWrite()
    this.lastCount = writes
    this.freshSince = at
  }

  private async tryPoll(): Promise<void> {
    try {
      await this.poll()
      if (this.isDown) this.options.logger.info('the database responds again')
      this.isDown = false
    } catch (error) {
      if (!this.isDown) this.options.logger.warn({ err: error }, 'the database does not respond')
      this.isDown = true
    }
  }
}
