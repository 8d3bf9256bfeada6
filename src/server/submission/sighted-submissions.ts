import type { GraphStore, SightingRecord } from '../../../backend/src/graph/graph-store.js'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import type { Sightings } from '../../follow/sightings.js'
import { ConflictError } from './errors.js'
import type { Overlay } from './overlay.js'
import type { Submit } from './submission-queue.js'

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
  const { changed } = await overlay.engine.writeLock.run(() => graph.sightings.record(records))
  for (const { status } of changed) overlay.emit({ kind: 'sighted', status })
  return changed.length > 0
}

/** Longer ones are parsed on another thread; what they conflict with is asked about in the background. */
const SHORT = 64 * 1024

/**
 * Submits, and has the network asked about what is unproven: in the background, or, before a conflict is lost to a transaction
 * that the network has not seen, now. Then it is submitted once more, and counts if the network has it.
 */
export function withSightings(submit: Submit, sightings: Pick<Sightings, 'ask' | 'notice'>): Submit {
  return async (submission) => {
    const { beef } = submission
    const isShort = beef.length <= SHORT
    try {
      const steak = await submit(submission)
      // What was admitted has been parsed.
      if (isShort) sightings.notice(unprovenIn(beef))
      return steak
    } catch (error) {
      if (
        !isShort ||
        !(error instanceof ConflictError) ||
        (error.tier !== 'unseen' && error.tier !== 'rejected')
      )
        throw error
      const { txid } = readBeef(beef).subject
      if (!(await sightings.ask([...new Set([error.data.txid, txid])]))) throw error
      return await submit(submission)
    }
  }
}

/** The subject of a BEEF, unless it is proven there. */
function unprovenIn(beef: Uint8Array): string[] {
  const { subject, proof } = readBeef(beef)
  return proof(subject.txid) === undefined ? [subject.txid] : []
}
