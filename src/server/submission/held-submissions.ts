import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { OverlayEngine } from './overlay-engine.js'
import { ChainTrackerError } from './submission-errors.js'

/** Between two looks, in milliseconds: blocks come every ten minutes. */
const EVERY = 30_000

/** Takes submissions that were not final when they came, once a block can hold them. */
export class HeldWatch {
  private readonly stopping = new AbortController()
  private running: Promise<void> | undefined

  constructor(
    private readonly options: { engine: Pick<OverlayEngine, 'releaseHeld'>; logger: Logger; every?: number },
  ) {}

  start(): void {
    this.running = this.run()
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await this.running
  }

  private async run(): Promise<void> {
    const { engine, logger, every = EVERY } = this.options
    const { signal } = this.stopping
    while (!signal.aborted) {
      try {
        const released = await engine.releaseHeld()
        if (released > 0) {
          logger.info({ released }, 'processed submissions that have become final')
          continue
        }
      } catch (err) {
        const level = err instanceof ChainTrackerError ? 'warn' : 'error'
        logger[level]({ err }, 'failed to process submissions that have become final; will retry')
      }
      await sleep(every, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}
