import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'

/** How long a failed part is left alone, in milliseconds. */
const AGAIN = 1000

/**
 * Does what writes have left to be done (`backend/src/storage/backlog.ts`), a part at a time. Between two parts others have
 * their turn for about as long as a part took: so neither keeps the other waiting.
 */
export class BacklogWorker {
  private readonly stopping = new AbortController()
  private running: Promise<void> | undefined
  private isNoticed = false

  constructor(
    private readonly options: {
      graph: Pick<GraphStore, 'isBehind' | 'workOff'>
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
    this.running ??= this.run().finally(() => {
      this.running = undefined
    })
  }

  /** Resolves when nothing is left to be done. */
  async done(): Promise<void> {
    this.notice()
    await this.running
  }

  async close(): Promise<void> {
    this.stopping.abort()
    await this.running
  }

  private async run(): Promise<void> {
    const { graph, exclusively, isWriting, logger } = this.options
    const { signal } = this.stopping
    const pause = async (time: number): Promise<void> => {
      await sleep(time, undefined, { signal, ref: false }).catch(() => {})
    }
    while (this.isNoticed && !signal.aborted) {
      this.isNoticed = false
      try {
        while (!signal.aborted && (await graph.isBehind())) {
          const since = performance.now()
          if (!(await exclusively(() => graph.workOff()))) break
          if (isWriting()) await pause(performance.now() - since)
        }
      } catch (err) {
        logger.error({ err }, 'what earlier submissions have left to be done failed; it is tried again')
        this.isNoticed = true
        await pause(AGAIN)
      }
    }
  }
}
