import type { Reason } from '../../../backend/src/graph/errors.js'
import type { GraphStore, SightingRecord } from '../../../backend/src/graph/graph-store.js'
import type { Sightings } from '../../chain/follow/sightings.js'
import { ConflictError } from './errors.js'
import { LARGE } from './large-submissions.js'
import type { Overlay } from './overlay.js'
import { contentsOf, type Submit } from './submission-queue.js'

/**
 * Records what the network said of transactions.
 *
 * @returns Whether that was news.
 */
export async function recordSightings(
  { graph, overlay }: { graph: Pick<GraphStore, 'sightings'>; overlay: Pick<Overlay, 'engine' | 'emit'> },
  records: readonly SightingRecord[],
): Promise<boolean> {
  if (records.length === 0) return false
  const { changed } = await overlay.engine.writes.run(() => graph.sightings.record(records))
  for (const { status } of changed) overlay.emit({ kind: 'sighted', status })
  return changed.length > 0
}

/**
 * Submits, and has the network asked about what is unproven: in the background, or, before a conflict is lost to a transaction
 * that the network has not seen, now. Then it is submitted once more, and counts if the network has it.
 */
export function withSightings(submit: Submit, sightings: Pick<Sightings, 'ask' | 'notice'>): Submit {
  return async (submission) => {
    const { beef } = submission
    // A large one is on another thread by then, which keeps it. What counts of them is asked about when the follower comes by.
    const isLarge = beef.length >= LARGE
    try {
      const steak = await submit(submission)
      if (!isLarge) sightings.notice(unprovenIn(beef))
      return steak
    } catch (error) {
      if (isLarge || !(await mayWin(error, sightings))) throw error
      return await submit(submission)
    }
  }
}

/** Asks the network about a conflict that is lost to a transaction that it has not seen. */
export async function mayWin(error: unknown, sightings: Pick<Sightings, 'ask' | 'notice'>): Promise<boolean> {
  if (!(error instanceof ConflictError)) return false
  const { txid, reason } = error.lost
  if (!OPEN_TIERS.has(reason.tier)) return false
  const both = [...new Set([reason.txid, txid])]
  if (await sightings.ask(both)) return true
  // Unless it was asked just now: the loser waits.
  sightings.notice(both)
  return false
}

/** Those of a winner, or of what was rejected, that an answer of the network may change. */
const OPEN_TIERS: ReadonlySet<string> = new Set(['unseen', 'rejected'] satisfies Reason['tier'][])

/** The subject of a BEEF, unless it is proven there. */
function unprovenIn(beef: Uint8Array): string[] {
  const { subject, proof } = contentsOf(beef)
  return proof(subject.txid) === undefined ? [subject.txid] : []
}
