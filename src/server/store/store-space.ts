import type { Logger } from 'pino'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** How long after the last write that found no space to try another, in milliseconds. */
const PROBE_AFTER = 5000

/**
 * Whether the store has space for writes: not from the first write that fails for lack of it until a small test write
 * succeeds. One is tried when the reason is read, as readiness probes do while the host is not ready.
 */
export class StoreSpace {
  private full = false
  private checkedAt = 0
  private isProbing = false

  constructor(
    private readonly options: {
      probe: () => Promise<void>
      logger: Logger
      now?: () => number
    },
  ) {}

  /** Call when a write has found no space. */
  found(): void {
    if (!this.full)
      this.options.logger.error('the store is full: nothing can be written until space is freed')
    this.full = true
    this.checkedAt = this.now()
  }

  reason(): string | undefined {
    if (!this.full) return undefined
    if (!this.isProbing && this.now() - this.checkedAt >= PROBE_AFTER) void this.probe()
    return 'the store is full'
  }

  private async probe(): Promise<void> {
    const { probe, logger } = this.options
    this.isProbing = true
    const before = this.checkedAt
    try {
      await probe()
      // A larger write may have failed meanwhile.
      if (this.checkedAt !== before) return
      this.full = false
      logger.info('the store accepts writes again')
    } catch {
      // Still full; or unavailable, which the readiness probe's ping reports.
      this.checkedAt = this.now()
    } finally {
      this.isProbing = false
    }
  }

  private now(): number {
    return (this.options.now ?? monotonic)()
  }
}
