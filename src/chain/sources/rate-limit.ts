import { setTimeout } from 'node:timers/promises'
import pLimit from 'p-limit'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** How many others go first, while there are any. */
const LET_FIRST = 4

/** A token bucket: `rate` permits a second on average, and as many at once after a pause. */
export class RateLimit {
  private readonly interval: number
  /** When the bucket would be empty, and then full for one more permit, in milliseconds. */
  private next = 0
  private readonly oneByOne = pLimit(1)

  /** @param now A clock, in milliseconds. */
  constructor(
    private readonly rate: number,
    private readonly now: () => number = monotonic,
  ) {
    this.interval = 1000 / rate
  }

  /**
   * Waits for a permit.
   *
   * @param options.isPatient Whether it lets others go first that are not, as long as a few permits take.
   * @throws the reason of the signal.
   */
  async permit({ isPatient, signal }: { isPatient: boolean; signal: AbortSignal }): Promise<void> {
    const pause = isPatient ? await this.oneByOne(() => this.takeLast(signal)) : this.take()
    if (pause > 0) await setTimeout(pause, undefined, { signal })
  }

  /**
   * Takes the next permit.
   *
   * @returns After how many milliseconds it may be used. Permits are used in the order in which they were taken.
   */
  take(): number {
    const now = this.now()
    const full = now - (this.rate - 1) * this.interval
    const at = Math.max(this.next, full)
    this.next = at + this.interval
    return Math.max(0, at - now)
  }

  private async takeLast(signal: AbortSignal): Promise<number> {
    const end = this.now() + LET_FIRST * this.interval
    for (let left = LET_FIRST * this.interval; this.wait > 0 && left > 0; left = end - this.now())
      await setTimeout(Math.min(this.wait, left), undefined, { signal })
    return this.take()
  }

  /** After how many milliseconds the next permit may be used. */
  private get wait(): number {
    return Math.max(0, this.next - this.now())
  }
}
