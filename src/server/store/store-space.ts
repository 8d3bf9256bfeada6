import type { Logger } from 'pino'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** How long after the last write that found no space to try another, in milliseconds. */
const PROBE_AFTER = 5000

/**
 * Whether the store has space for writes: not from the first write that fails for lack of it until a small test write
 * succeeds. One is tried when the reason is read, as readiness probes do while the host is not ready.
 */
export class StoreSpace {
  /** When a write last found no space; undefined if the store accepts writes. */
  private fullAt: number | undefined
  private probing: Promise<void> | undefined

  constructor(
    private readonly options: {
      probe: () => Promise<void>
      logger: Logger
      now?: () => number
    },
  ) {}

  /** Call when a write has found no space. */
  found(): void {
    if (this.fullAt === undefined)
      this.options.logger.error('the store is full: nothing can be written until space is freed')
    this.fullAt = this.now()
  }

  reason(): string | undefined {
    if (this.fullAt === undefined) return undefined
    if (this.now() - this.fullAt >= PROBE_AFTER)
      this.probing ??= this.probe().finally(() => {
        this.probing = undefined
      })
    return 'the store is full'
  }

  private async probe(): Promise<void> {
    const { probe, logger } = this.options
    const before = this.fullAt
    try {
      await probe()
      // A larger write may have failed meanwhile.
      if (this.fullAt !== before) return
      this.fullAt = undefined
      logger.info('the store accepts writes again')
    } catch {
      // Still full; or unavailable, which the readiness probe's ping reports.
      this.fullAt = this.now()
    }
  }

  private now(): number {
    return (this.options.now ?? monotonic)()
  }
}
