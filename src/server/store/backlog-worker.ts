import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** How long after a failure it is retried if nothing else is written meanwhile, in milliseconds. */
const RETRY_DELAY = 30_000

/**
 * Works off what writes have left in the backlog (`backend/src/storage/write/backlog.ts`), a part at a time. Between two
 * parts other writers get about as long as a part took, so neither starves the other.
 */
export class BacklogWorker {
  private readonly stopping = new AbortController()
  private running: Promise<void> | undefined
  private isNotified = false
  private retry: NodeJS.Timeout | undefined
  /** Whether the last attempt failed: that is logged once, not after every write that fails for the same reason. */
  private isFailing = false

  constructor(
    private readonly options: {
      graph: Pick<GraphStore, 'backlog'>
      /** Runs work while nothing else is written, before other writers that wait. */
      runLocked: (work: () => Promise<boolean>) => Promise<boolean>
      isWriting: () => boolean
      logger: Logger
    },
  ) {}

  get isBusy(): boolean {
    return this.running !== undefined
  }

  /** Called after every write, which may have left work. */
  notify(): void {
    this.isNotified = true
    if (this.stopping.signal.aborted) return
    this.running ??= this.run()
  }

  /** Resolves when no work is left, or it failed. */
  async done(): Promise<void> {
    this.notify()
    await this.running
  }

  async close(): Promise<void> {
    this.stopping.abort()
    clearTimeout(this.retry)
    await this.running
  }

  private async run(): Promise<void> {
    const { graph, runLocked, isWriting, logger } = this.options
    const { signal } = this.stopping
    clearTimeout(this.retry)
    while (this.isNotified && !signal.aborted) {
      this.isNotified = false
      try {
        while (!signal.aborted && (await graph.backlog.isBehind())) {
          const since = monotonic()
          if (!(await runLocked(() => graph.backlog.workOff()))) break
          const took = monotonic() - since
          if (isWriting()) await sleep(took, undefined, { signal, ref: false }).catch(() => {})
        }
        this.isFailing = false
      } catch (err) {
        if (!this.isFailing)
          logger.error({ err }, 'the backlog of earlier submissions failed; retrying later')
        this.isFailing = true
        this.retry = setTimeout(() => this.notify(), RETRY_DELAY).unref()
        break
      }
    }
    // In the same tick in which nothing more was left to do.
    this.running = undefined
  }
}
