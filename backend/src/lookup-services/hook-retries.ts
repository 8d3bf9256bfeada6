import { type FailedHook, type HookOutbox, subjectOf } from '../graph/hook-outbox.js'

/** A hook that failed, or failed again when it was retried. */
export interface HookFailure {
  service: string
  /** Undefined if the outbox itself could not be read. */
  failed?: FailedHook
  /** Where it waits for a retry: `outbox`; `lost` if the database took no record and memory is full. */
  kept: 'outbox' | 'in memory' | 'lost'
  error: unknown
}

export interface HookRetriesOptions {
  service: string
  outbox: HookOutbox
  /** Repeats a failed hook. Must be idempotent. */
  retry: (failed: FailedHook) => Promise<void>
  /** Hooks that an earlier process did not live to call; they are run once, after those in the outbox. */
  missed?: (() => AsyncIterable<FailedHook>) | undefined
  onHookFailure?: ((failure: HookFailure) => void) | undefined
  times?: Partial<RetryTimes> | undefined
}

/** When failed hooks are retried, in milliseconds. */
export interface RetryTimes {
  /** After the start, and after a failure. */
  soon: number
  /** The longest wait; it doubles after every round in which nothing succeeded. */
  longest: number
  /** Between two rounds while the outbox is empty: another process may have added to it. */
  idle: number
}

const TIMES: RetryTimes = { soon: 2000, longest: 5 * 60_000, idle: 60_000 }

/** What memory holds while not even the outbox can be written: bytes of BEEF, and hooks. */
const MEMORY_BYTES = 64 * 1024 * 1024
const MEMORY_HOOKS = 10_000

/**
 * Retries failed hooks until they succeed: from the outbox, and while the database is unavailable, from memory as far as that
 * goes. Hooks are idempotent and may run in any order, so nothing else has to wait for them.
 */
export class HookRetries {
  private readonly inMemory = new Map<string, FailedHook>()
  private memoryBytes = 0
  private readonly times: RetryTimes
  private timer: NodeJS.Timeout | undefined
  private running: Promise<void> | undefined
  private wait: number
  private hasCaughtUp = false
  private closed = false

  constructor(private readonly options: HookRetriesOptions) {
    this.times = { ...TIMES, ...options.times }
    this.wait = this.times.soon
    this.schedule(this.wait)
  }

  /**
   * Runs a hook; if it fails, puts it into the outbox.
   *
   * @param failedHook Called if it fails.
   * @throws what `work` threw if the outbox could not be written: the host logs it.
   */
  async run(failedHook: () => FailedHook, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const failed = failedHook()
      const kept = await this.keep(failed)
      this.options.onHookFailure?.({ service: failed.service, failed, kept, error })
      this.wait = this.times.soon
      this.schedule(this.wait)
      if (kept !== 'outbox') throw error
    }
  }

  /** Stops retrying; resolves when no retry is in progress. What is in the outbox is retried after the next start. */
  async close(): Promise<void> {
    this.closed = true
    clearTimeout(this.timer)
    await this.running
  }

  private async keep(failed: FailedHook): Promise<HookFailure['kept']> {
    try {
      await this.options.outbox.keep(failed)
      this.forget(failed)
      return 'outbox'
    } catch {
      // Unavailable, as for the hook itself, whose error the host is given.
      return this.keepInMemory(failed) ? 'in memory' : 'lost'
    }
  }

  private keepInMemory(failed: FailedHook): boolean {
    const subject = subjectOf(failed)
    if (this.inMemory.has(subject)) return true
    const bytes = this.memoryBytes + bytesOf(failed)
    if (this.inMemory.size >= MEMORY_HOOKS || bytes > MEMORY_BYTES) return false
    this.inMemory.set(subject, failed)
    this.memoryBytes = bytes
    return true
  }

  private forget(failed: FailedHook): void {
    if (this.inMemory.delete(subjectOf(failed))) this.memoryBytes -= bytesOf(failed)
  }

  private schedule(milliseconds: number): void {
    if (this.closed) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.running ??= this.runRound().finally(() => {
        this.running = undefined
        this.schedule(this.wait)
      })
    }, milliseconds).unref()
  }

  private async runRound(): Promise<void> {
    const { service, onHookFailure } = this.options
    try {
      await this.round()
    } catch (error) {
      // The outbox could not be read: what is in it stays there.
      onHookFailure?.({ service, kept: 'outbox', error })
      this.backOff()
    }
  }

  /** Retries everything once. */
  private async round(): Promise<void> {
    let succeeded = 0
    let left = 0
    const attempt = async (failed: FailedHook): Promise<void> => {
      if (this.closed) return
      if (await this.retry(failed)) succeeded++
      else left++
    }
    for (const failed of [...this.inMemory.values()]) await attempt(failed)
    for await (const failed of this.options.outbox.kept(this.options.service)) {
      if (this.closed) return
      if (!this.inMemory.has(subjectOf(failed))) await attempt(failed)
    }
    if (left === 0) this.wait = this.times.idle
    else if (succeeded > 0) this.wait = this.times.soon
    else this.backOff()
    if (!this.hasCaughtUp) await this.catchUp()
  }

  /** @throws what made a hook fail if the outbox could not be written either: then it is missed again. */
  private async catchUp(): Promise<void> {
    const { missed, retry } = this.options
    for await (const hook of missed?.() ?? []) {
      if (this.closed) return
      await this.run(
        () => hook,
        () => retry(hook),
      )
    }
    this.hasCaughtUp = true
  }

  private backOff(): void {
    this.wait = Math.min(Math.max(this.wait, this.times.soon) * 2, this.times.longest)
  }

  private async retry(failed: FailedHook): Promise<boolean> {
    const { service, retry, outbox, onHookFailure } = this.options
    try {
      await retry(failed)
      await outbox.release(failed)
      this.forget(failed)
      return true
    } catch (error) {
      onHookFailure?.({ service, failed, kept: await this.keep(failed), error })
      return false
    }
  }
}

function bytesOf(failed: FailedHook): number {
  return failed.hook === 'evicted' ? 0 : (failed.beef?.length ?? 0)
}
