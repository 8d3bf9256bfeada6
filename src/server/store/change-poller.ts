import type { Logger } from 'pino'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** How often it is looked for writes, and how long what was seen then counts, in milliseconds. */
const EVERY = 250
const COUNTS_FOR = 750

export interface ChangePollerOptions {
  writes: () => Promise<number>
  /** Called where somebody has written since it was last looked; what it does is waited for. */
  onWrite: () => Promise<void>
  logger: Logger
}

/**
 * Looks for what other processes write to a database that this one has, too, so that what is kept in memory is given up
 * within a second. Where the database was not to be asked of late, nothing in memory counts: nobody knows what is true.
 */
export class ChangePoller {
  private seen: number | undefined
  private seenAt = Number.NEGATIVE_INFINITY
  private timer: NodeJS.Timeout | undefined
  private looking: Promise<void> = Promise.resolve()
  private stopped = false
  private isAway = false

  constructor(private readonly options: ChangePollerOptions) {}

  /** Whether what is in memory was true less than a second ago. */
  get isFresh(): boolean {
    return monotonic() - this.seenAt < COUNTS_FOR
  }

  /** Looks at once, and from then on until {@link stop}. @throws what the database throws the first time. */
  async start(): Promise<void> {
    await this.look()
    this.plan()
  }

  async stop(): Promise<void> {
    this.stopped = true
    clearTimeout(this.timer)
    await this.looking
  }

  private plan(): void {
    if (this.stopped) return
    this.timer = setTimeout(() => {
      this.looking = this.tryToLook().finally(() => this.plan())
    }, EVERY).unref()
  }

  private async look(): Promise<void> {
    const at = monotonic()
    const writes = await this.options.writes()
    if (writes !== this.seen) await this.options.onWrite()
    this.seen = writes
    this.seenAt = at
  }

  private async tryToLook(): Promise<void> {
    try {
      await this.look()
      if (this.isAway) this.options.logger.info('the database responds again')
      this.isAway = false
    } catch (error) {
      if (!this.isAway) this.options.logger.warn({ err: error }, 'the database does not respond')
      this.isAway = true
    }
  }
}
