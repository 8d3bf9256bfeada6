/** A token bucket: `rate` permits a second on average, and as many at once after a pause. */
export class RateLimit {
  private readonly interval: number
  /** When the bucket would be empty, and then full for one more permit, in milliseconds. */
  private next = 0

  /** @param now A clock, in milliseconds. */
  constructor(
    private readonly rate: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.interval = 1000 / rate
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
}
