/** How long a graph is tried again, in milliseconds: a block is known everywhere by then, and most conflicts are mined. */
const PATIENCE = 24 * 60 * 60 * 1000
/** How many are waited for at once. */
const MAX_OPEN = 1000

/**
 * The graphs of a peer that could not be taken, and may be the next time. What a sync starts from stays before them, so
 * that the peer offers them again, also after a restart.
 */
export class OpenGraphs {
  private readonly graphs = new Map<string, { score: number; since: number }>()

  constructor(private readonly now: () => number = Date.now) {}

  /** Leaves a graph open, unless it has been for too long. */
  leave(txid: string, score: number): void {
    const since = this.graphs.get(txid)?.since ?? this.now()
    this.graphs.set(txid, { score, since })
    if (this.graphs.size > MAX_OPEN) this.giveUpFirst()
  }

  close(txid: string): void {
    this.graphs.delete(txid)
  }

  /** The score that a sync is to start from which has come as far as `score`. */
  startFrom(score: number): number {
    let start = score
    for (const [txid, open] of this.graphs) {
      if (this.now() - open.since > PATIENCE) this.graphs.delete(txid)
      else start = Math.min(start, open.score)
    }
    return start
  }

  private giveUpFirst(): void {
    const [first] = [...this.graphs].sort(([, a], [, b]) => a.score - b.score)
    if (first !== undefined) this.graphs.delete(first[0])
  }
}
