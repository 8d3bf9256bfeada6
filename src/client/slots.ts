/** Runs a limited number of jobs at once; the others wait in order. */
export class Slots {
  private readonly waiting: (() => void)[] = []

  constructor(private free: number) {}

  async run<Result>(job: () => Promise<Result>): Promise<Result> {
    if (this.free > 0) this.free--
    else await new Promise<void>((resume) => this.waiting.push(resume))
    try {
      return await job()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.free++
      else next()
    }
  }
}
