import { Mutex } from 'async-mutex'
import { LRUCache } from 'lru-cache'
import type { RootChecker } from '../../backend/src/graph/overlay-interfaces.js'
import type { Proof, TransactionRecord } from '../../backend/src/graph/records.js'
import { verdictOf } from '../../backend/src/host/verification.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'

export interface HeardProof {
  txid: string
  proof: Proof
}

export interface HeardProofsOptions {
  graph: FactStore
  chainTracker: RootChecker | 'scripts only'
  onError: (error: unknown) => void
  /** How long the chain tracker may take, in milliseconds. */
  trackerTimeout: number
  /** Milliseconds before the first retry of a proof; the wait doubles each time. */
  retryAfter: number
}

/** The most proofs that wait; beyond that, the oldest is dropped. Each has a few kilobytes at most. */
const MAX_WAITING = 1000
/** How often a proof is retried: for a quarter of an hour, with the usual wait. */
const RETRIES = 10

/**
 * Records proofs of known transactions once a chain tracker has confirmed them. A proof that comes before its transaction, or
 * while the chain tracker has no answer, waits in memory and is retried.
 */
export class HeardProofs {
  private readonly waiting = new LRUCache<string, NodeJS.Timeout>({
    max: MAX_WAITING,
    dispose: (again) => clearTimeout(again),
  })
  /** Retries run one at a time: any number may be due once the chain tracker is back. */
  private readonly retrying = new Mutex()

  constructor(private readonly options: HeardProofsOptions) {}

  /** Resolves when the index has the proof, or when the proof was dropped or waits. Never rejects. */
  async hear(heard: HeardProof): Promise<void> {
    await this.attempt(heard, RETRIES)
  }

  private async attempt(heard: HeardProof, left: number): Promise<void> {
    const { onError } = this.options
    try {
      if (await this.isDone(heard)) return
    } catch (error) {
      onError(error)
    }
    if (left > 0) this.wait(heard, left)
  }

  private wait(heard: HeardProof, left: number): void {
    const { waiting } = this
    const key = `${heard.txid} ${heard.proof.root}`
    const again = setTimeout(
      () => {
        waiting.delete(key)
        void this.retrying.runExclusive(() => this.attempt(heard, left - 1))
      },
      this.options.retryAfter * 2 ** (RETRIES - left),
    )
    waiting.set(key, again.unref())
  }

  /** Records a proof, unless it is false. @returns Whether nothing is left to do. */
  private async isDone({ txid, proof }: HeardProof): Promise<boolean> {
    const { graph, chainTracker: tracker, trackerTimeout: timeout } = this.options
    // Cheapest first: anybody may send a proof.
    await graph.opened?.()
    const stored = graph.transactions.raw(txid)
    if (stored === undefined) return false
    const { height, root } = proof
    if (stored.proof?.height === height && stored.proof.root === root) return true
    const verdict = tracker === 'scripts only' ? 'yes' : await verdictOf(proof, { tracker, timeout })
    if (verdict !== 'yes') return verdict === 'no'
    const known = graph.transactions.get(txid)
    if (known !== undefined) await recordProofs(graph, [{ ...known, proof }])
    return known !== undefined
  }
}

/** Records proofs of transactions that the index has; transactions themselves come only by way of a topic manager. */
export async function recordProofs(graph: FactStore, transactions: TransactionRecord[]): Promise<void> {
  await graph.opened?.()
  const known = transactions.filter(({ txid, proof }) => proof !== undefined && graph.transactions.has(txid))
  if (known.length > 0) await graph.record(known)
}
