/** What is left to be done for the fact that is being applied: each phase adds to later ones, and empties its own. */
export class Agenda {
  /** The seq of the fact, for the scores that it gives. */
  seq = 0
  /** Outputs with higher ids came with this fact. */
  lastEarlierOutput = 0
  /** Transactions whose outputs are to be derived again, by id. */
  readonly toJudge = new Set<number>()
  /** Transactions that may count now or no longer, by id. */
  readonly toDecide = new Set<number>()
  /** Ordinals that may be found by something else now, by the id of their first output. */
  readonly lineages = new Set<number>()
  /** Outputs without number whose owner or spender may be another one now, by id. */
  readonly unnumbered = new Set<number>()

  clear(): void {
    for (const each of [this.toJudge, this.toDecide, this.lineages, this.unnumbered]) each.clear()
  }
}
