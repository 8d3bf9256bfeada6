import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { transactionRecords } from '../../../backend/src/graph/transaction-records.js'
import type { ProofVerifier } from '../chain/proof-verifier.js'
import { admittedCount } from '../submission/overlay.js'
import type { OverlayEngine } from '../submission/overlay-engine.js'
import { type Holdings, isHeld } from './is-held.js'
import type { Step, SyncGraph } from './sync-graph.js'

export interface TakeOptions {
  topics: string[]
  engine: Pick<OverlayEngine, 'verify' | 'admit'>
  proofs: Pick<ProofVerifier, 'openSyncTracker'>
  graph: Holdings
  signal: AbortSignal
}

/**
 * Gives the transactions of a graph to their topics, parents before children: all of them verified before any of them is
 * stored, each in a turn of its own, so that others have theirs between.
 *
 * @throws As {@link OverlayEngine.verify} and {@link OverlayEngine.admit}. What was admitted before that stays: it is what
 * it is, whatever comes after it.
 */
export async function takeGraph(graph: SyncGraph, options: TakeOptions): Promise<void> {
  const { topics, engine } = options
  const steps = await lacking(graph.steps(), options)
  const sources = await verified(graph, steps, options)
  /** What the store holds by now of this graph. */
  const told = new Set<string>()
  for (const { txid } of steps) {
    options.signal.throwIfAborted()
    const contents = graph.contents(txid, told)
    const verifiedStep = { contents, topics, sources: sources.get(txid) ?? [] }
    const steak = await engine.admit(verifiedStep)
    if (admittedCount(steak) === 0) continue
    for (const record of transactionRecords(contents).transactions) told.add(record.txid)
  }
}

/** Others may have brought some of them since the graph was collected. */
async function lacking(steps: Step[], { graph }: TakeOptions): Promise<Step[]> {
  const left: Step[] = []
  for (const step of steps) {
    for (const topic of step.wantedBy) {
      if (await isHeld(graph, { topic, txid: step.txid })) continue
      left.push(step)
      break
    }
  }
  return left
}

/**
 * Verifies all steps, from the last one back: an unproven one brings its unproven ancestors with it, so that each is looked
 * at once, however long the chain.
 *
 * @returns What places the ordinals of each, and is proven to.
 */
async function verified(
  graph: SyncGraph,
  steps: Step[],
  { topics, engine, proofs }: TakeOptions,
): Promise<Map<string, TransactionRecord[]>> {
  const tracker = proofs.openSyncTracker()
  const sources = new Map<string, TransactionRecord[]>()
  const covered = new Set<string>()
  for (const { txid } of [...steps].reverse()) {
    const isProven = graph.transactions.get(txid)?.proof !== undefined
    if (!isProven && covered.has(txid)) continue
    const contents = graph.contents(txid)
    sources.set(txid, await engine.verify(contents, topics, tracker))
    for (const record of transactionRecords(contents).transactions) covered.add(record.txid)
  }
  return sources
}
