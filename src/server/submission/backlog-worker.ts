import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'

/** How long what failed is left alone, where nothing else is written meanwhile, in milliseconds. */
const AGAIN = 30_000

/**
 * Does what writes have left to be done (`backend/src/storage/write/backlog.ts`), a part at a time. Between two parts others have
 * their turn for about as long as a part took: so neither keeps the other waiting.
 */
export class BacklogWorker {
  private readonly stopping = new AbortController()
  private running: Promise<void> | undefined
  private isNoticed = false
  private again: NodeJS.Timeout | undefined

  constructor(
    private readonly options: {
      graph: Pick<GraphStore, 'backlog'>
      /** Does something while nothing else is written, before whatever waits for that. */
      exclusively: (work: () => Promise<boolean>) => Promise<boolean>
      /** Whether something waits, or is being written. */
      isWriting: () => boolean
      logger: Logger
    },
  ) {}

  /** Whether something may be left to be done. */
  get isBusy(): boolean {
    return this.running !== undefined
  }

  /** Called after every write, which may have left something. */
  notice(): void {
    this.isNoticed = true
    if (this.stopping.signal.aborted) return
    this.running ??= this.run()
  }

  /** Resolves when nothing is left to be done, or that failed. */
  async done(): Promise<void> {
    this.notice()
    await this.running
  }

  async close(): Promise<void> {
    this.stopping.abort()
    clearTimeout(this.again)
    await this.running
  }

  private async run(): Promise<void> {
    const { graph, exclusively, isWriting, logger } = this.options
    const { signal } = this.stopping
    clearTimeout(this.again)
    while (this.isNoticed && !signal.aborted) {
      this.isNoticed = false
      try {
        while (!signal.aborted && (await graph.backlog.isBehind())) {
          const since = performance.now()
          if (!(await exclusively(() => graph.backlog.workOff()))) break
          const took = performance.now() - since
          if (isWriting()) await sleep(took, undefined, { signal, ref: false }).catch(() => {})
        }
      } catch (err) {
        logger.error({ err }, 'failed to process work left by earlier submissions; will retry')
        this.again = setTimeout(() => this.notice(), AGAIN).unref()
        break
      }
    }
    // In the same step as nothing more was noticed.
    this.running = undefined
  }
}
