/**
 * Why a host is not ready, if it is not: each of its parts gives a reason in one line, under a name. A host that is ready
 * gets traffic, so a part gives a reason if it would answer wrongly, or not at all.
 */
export class Readiness {
  private readonly checks = new Map<string, () => string | undefined>()

  /** @param check Returns the reason in a sentence; undefined if the part is ready. Called for each question. */
  add(name: string, check: () => string | undefined): void {
    this.checks.set(name, check)
  }

  get names(): string[] {
    return [...this.checks.keys()]
  }

  /** The reasons by the names of the parts; empty if the host is ready. */
  reasons(): Record<string, string> {
    const reasons = [...this.checks].map(([name, check]) => [name, check()] as const)
    return Object.fromEntries(reasons.filter((each): each is [string, string] => each[1] !== undefined))
  }
}
