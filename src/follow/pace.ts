/** Answers that somebody who is waited for has to give in a time. */
export interface PaceRule {
  /** Milliseconds. */
  within: number
  /** How many, at the least. A MiB of a long one counts as one. */
  answers: number
}

const USUAL: PaceRule = { within: 30_000, answers: 5 }
const MiB = 1024 * 1024

/**
 * Whether somebody answers fast enough to be waited for. Only the time counts in which a question is open: nobody is slow
 * because nobody asks.
 */
export class Pace {
  private readonly since: number[]
  private open = 0
  private openSince = 0
  /** How long questions have been open in all, but for now. */
  private waited = 0

  /** @param now A clock, in milliseconds. */
  constructor(
    private readonly wanted: PaceRule = USUAL,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.since = Array.from({ length: wanted.answers }, () => 0)
  }

  /** For people. */
  get rule(): string {
    const { within, answers } = this.wanted
    return `fewer than ${answers} answers in ${Math.round(within / 1000)} seconds`
  }

  /** A question is asked. */
  begin(): void {
    if (this.open === 0) this.openSince = this.now()
    this.open++
  }

  /** It is open no more, whatever came of it. */
  end(): void {
    this.open--
    if (this.open === 0) this.waited += this.now() - this.openSince
  }

  /** An answer came that is of use. */
  answered(bytes: number): void {
    const { since } = this
    const counts = Math.min(since.length, 1 + Math.floor(bytes / MiB))
    since.splice(0, counts)
    since.push(...Array.from({ length: counts }, () => this.clock))
  }

  /** @param pause How long it is about to be waited for beside that, in milliseconds. */
  isKept(pause = 0): boolean {
    return this.clock + pause - (this.since[0] ?? 0) <= this.wanted.within
  }

  /** How long questions have been open until now. */
  private get clock(): number {
    return this.waited + (this.open > 0 ? this.now() - this.openSince : 0)
  }
}
