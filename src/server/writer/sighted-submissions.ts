import type { SightingRecord } from '../../../backend/src/graph/conflict-resolution.js'
import type { Reason } from '../../../backend/src/graph/errors.js'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { Sightings } from '../../chain/follow/sightings.js'
import { ConflictError } from './errors.js'
import { LARGE } from './large-submissions.js'
import type { Overlay } from './overlay.js'
import type { Submit } from './submission-queue.js'

/**
 * Records what the network said about transactions.
 *
 * @returns Whether anything was new.
 */
export async function recordSightings(
  { graph, overlay }: { graph: Pick<FactStore, 'sightings'>; overlay: Pick<Overlay, 'engine' | 'emit'> },
  records: readonly SightingRecord[],
): Promise<boolean> {
  if (records.length === 0) return false
  const { changed } = await overlay.engine.writes.run(() => graph.sightings.record(records))
  for (const { status } of changed) overlay.emit({ kind: 'sighted', status })
  return changed.length > 0
}

/** Wraps a submit function to ask the network about unproven transactions, in the background and before a conflict is lost. */
export function withSightings(submit: Submit, sightings: Pick<Sightings, 'ask' | 'notice'>): Submit {
  const asking = askingBeforeLoss(submit, sightings)
  return async (submission) => {
    const steak = await asking(submission)
    // Reading a large BEEF would block this thread for long. The follower asks about those that are active.
    if (submission.beef.length < LARGE) sightings.notice(unprovenIn(submission.beef))
    return steak
  }
}

/**
 * Asks the network before a conflict is lost to a transaction that it has not seen. The transaction is then submitted again, and
 * wins if the network has it.
 */
export function askingBeforeLoss(submit: Submit, sightings: Pick<Sightings, 'ask' | 'notice'>): Submit {
  return async (submission) => {
    try {
      return await submit(submission)
    } catch (error) {
      if (!(await mayWin(error, sightings))) throw error
      return await submit(submission)
    }
  }
}

/** Asks the network about a conflict lost to a transaction that it has not seen. Returns whether a retry may win. */
async function mayWin(error: unknown, sightings: Pick<Sightings, 'ask' | 'notice'>): Promise<boolean> {
  if (!(error instanceof ConflictError)) return false
  const { txid, reason } = error.lost
  if (!OPEN_TIERS.has(reason.tier)) return false
  const both = [...new Set([reason.txid, txid])]
  if (await sightings.ask(both)) return true
  // Ask in the background, unless that happened recently: the loser waits.
  sightings.notice(both)
  return false
}

/** The tiers of a winner, or of a rejected transaction, that an answer of the network may change. */
const OPEN_TIERS: ReadonlySet<string> = new Set(['unseen', 'rejected'] satisfies Reason['tier'][])

/** The subject of a BEEF, unless it is proven there. */
function unprovenIn(beef: Uint8Array): string[] {
  const { subject, proof } = readBeef(beef)
  return proof(subject.txid) === undefined ? [subject.txid] : []
}
