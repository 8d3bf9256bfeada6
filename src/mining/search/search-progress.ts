/** How far a search is. */
export interface SearchProgress {
  /** Hashes tried by all workers so far. */
  hashes: number
  /** Over the last few seconds. */
  hashesPerSecond: number
  /** Seconds that a search of this difficulty takes on average at this rate. */
  expectedSeconds: number
  /** How likely it was to have found one by now: 1 − (1 − 2^−difficulty)^hashes, 0 to 1. */
  luck: number
}

/** Milliseconds between two reports. */
const INTERVAL = 250
/** Reports that the rate is measured over: five seconds of them. */
const WINDOW = 20

/** Counts the hashes of a search, and reports them about four times a second. */
export class ProgressMeter {
  readonly #difficulty: number
  readonly #report: ((progress: SearchProgress) => void) | undefined
  /** What was counted at the last reports, the oldest first. */
  readonly #counts: { time: number; hashes: number }[] = []
  #last: { time: number; hashes: number }
  #hashes = 0

  /** @param meter.now The time in milliseconds, since any moment. */
  constructor(meter: {
    difficulty: number
    report?: (progress: SearchProgress) => void
    now: number
  }) {
    this.#difficulty = meter.difficulty
    this.#report = meter.report
    this.#last = { time: meter.now, hashes: 0 }
  }

  /** All that were tried so far. */
  get hashes(): number {
    return this.#hashes
  }

  /** Counts hashes that were tried until `now`. */
  count(hashes: number, now: number): void {
    this.#hashes += hashes
    if (now - this.#last.time < INTERVAL) return
    this.#counts.push(this.#last)
    if (this.#counts.length > WINDOW) this.#counts.shift()
    this.#last = { time: now, hashes: this.#hashes }
    const { time, hashes: before } = this.#counts[0] ?? this.#last
    const hashesPerSecond = ((this.#hashes - before) / (now - time)) * 1000
    this.#report?.({
      hashes: this.#hashes,
      hashesPerSecond,
      expectedSeconds: 2 ** this.#difficulty / hashesPerSecond,
      luck: luckOf(this.#hashes, this.#difficulty),
    })
  }
}

/** Without rounding the small numbers away: of 64 bits, 1 − 2^−64 is 1 to a computer. */
function luckOf(hashes: number, difficulty: number): number {
  return -Math.expm1(hashes * Math.log1p(-(2 ** -difficulty)))
}
