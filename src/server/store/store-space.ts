import type { Logger } from 'pino'

/** After the last write that found no space, until it is tried whether there is some again, in milliseconds. */
const PROBE_AFTER = 5000

/**
 * Whether the store has space for writes: not from the moment on at which one fails for want of it, until a small write
 * of this class succeeds. It tries one when somebody asks for the reason, which is what watches a host that is not ready.
 */
export class StoreSpace {
  private full = false
  private lookedAt = 0
  private isProbing = false

  constructor(
    private readonly options: {
      /** Writes something small. */
      probe: () => Promise<void>
      logger: Logger
      /** A clock, in milliseconds. */
      now?: () => number
    },
  ) {}

  /** A write has found no space. */
  found(): void {
    if (!this.full)
      this.options.logger.error('the store is full: nothing can be written until space is freed')
    this.full = true
    this.lookedAt = this.now()
  }

  /** Why the host is not ready; undefined where there is space, as far as is known. */
  reason(): string | undefined {
    if (!this.full) return undefined
    if (!this.isProbing && this.now() - this.lookedAt >= PROBE_AFTER) void this.probe()
    return 'the store is full'
  }

  private async probe(): Promise<void> {
    const { probe, logger } = this.options
    this.isProbing = true
    const before = this.lookedAt
    try {
      await probe()
      // A larger write may have failed meanwhile.
      if (this.lookedAt !== before) return
      this.full = false
      logger.info('the store accepts writes again')
    } catch {
      // Still full, or gone: then the ping of readiness says so.
      this.lookedAt = this.now()
    } finally {
      this.isProbing = false
    }
  }

  private now(): number {
    return (this.options.now ?? (() => performance.now()))()
  }
}
