import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** The answers that a service has to give within a time. */
export interface PaceRule {
  /** Milliseconds. */
  within: number
  /** The least number. Each MiB of a long answer counts as one. */
  answers: number
}

const USUAL: PaceRule = { within: 30_000, answers: 5 }
const MiB = 1024 * 1024

/** Measures whether a service answers fast enough. Only time with an open question counts, not idle time. */
export class Pace {
  private readonly since: number[]
  private open = 0
  private openSince = 0
  /** How long questions have been open in total, without the current ones. */
  private waited = 0

  /** @param now A clock, in milliseconds. */
  constructor(
    private readonly required: PaceRule = USUAL,
    private readonly now: () => number = monotonic,
  ) {
    this.since = Array.from({ length: required.answers }, () => 0)
  }

  /** For messages. */
  get rule(): string {
    const { within, answers } = this.required
    return `fewer than ${answers} answers in ${Math.round(within / 1000)} seconds`
  }

  /** Call when a question is sent. */
  begin(): void {
    if (this.open === 0) this.openSince = this.now()
    this.open++
  }

  /** Call when it is closed, whatever the result. */
  end(): void {
    this.open--
    if (this.open === 0) this.waited += this.now() - this.openSince
  }

  /** Call for each useful answer. */
  answered(bytes: number): void {
    const { since } = this
    const counts = Math.min(since.length, 1 + Math.floor(bytes / MiB))
    since.splice(0, counts)
    since.push(...Array.from({ length: counts }, () => this.clock))
  }

  isKept(): boolean {
    return this.clock - (this.since[0] ?? 0) <= this.required.within
  }

  /** Forgets what was, as if the service had just answered. */
  reset(): void {
    this.since.fill(this.clock)
  }

  /** How long questions have been open up to now. */
  private get clock(): number {
    return this.waited + (this.open > 0 ? this.now() - this.openSince : 0)
  }
}
