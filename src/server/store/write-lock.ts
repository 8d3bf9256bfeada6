import { Mutex } from 'async-mutex'

/** The one writer at a time of a process: submissions, reorg rounds, proofs from ARC and index maintenance wait for it. */
export class WriteLock {
  /** Whether writes wait for one another in the store, and not here. */
  readonly isInStore: boolean = false
  private readonly mutex = new Mutex()
  /** @throws NotReadyError while the index is incomplete: what is decided by half of one is wrong. */
  assertIndexComplete: () => void = () => {}
  /** Called after each write, which may have left work in the backlog. */
  onWritten: () => void = () => {}

  get isLocked(): boolean {
    return this.mutex.isLocked()
  }

  /**
   * Runs a write while no other is in progress.
   *
   * @param priority The highest goes first; of equals, the first to come. By default before any submission.
   */
  async run<Result>(write: () => Promise<Result>, priority = 0): Promise<Result> {
    try {
      return await this.mutex.runExclusive(async () => {
        this.assertIndexComplete()
        return await write()
      }, priority)
    } finally {
      this.onWritten()
    }
  }

  /** As {@link run}, for a write that another may do meanwhile: then its turn passes. */
  async runIfNeeded(
    write: () => Promise<void>,
    { priority, isNeeded }: { priority: number; isNeeded: () => boolean },
  ): Promise<void> {
    const release = await this.mutex.acquire(priority)
    if (!isNeeded()) return release()
    try {
      this.assertIndexComplete()
      await write()
    } finally {
      release()
      this.onWritten()
    }
  }

  /** As {@link run}, for work on the backlog and on the index itself, which may be incomplete. */
  async runOnIndex<Result>(work: () => Promise<Result>): Promise<Result> {
    return await this.mutex.runExclusive(work)
  }
}

/**
 * That of a store whose writer has a queue of its own: nothing waits here, and each write of such a store is whole in itself.
 */
export class NoLock extends WriteLock {
  override readonly isInStore = true

  override async run<Result>(write: () => Promise<Result>): Promise<Result> {
    try {
      this.assertIndexComplete()
      return await write()
    } finally {
      this.onWritten()
    }
  }

  override async runIfNeeded(
    write: () => Promise<void>,
    { isNeeded }: { isNeeded: () => boolean },
  ): Promise<void> {
    if (isNeeded()) await this.run(write)
  }

  override async runOnIndex<Result>(work: () => Promise<Result>): Promise<Result> {
    return await work()
  }
}
