import type { AdmissionsReader, StatusReader } from '../../../backend/src/graph/graph-store.js'

/** What tells whether a transaction need not come again. */
export type Holdings = Pick<AdmissionsReader, 'isApplied'> & StatusReader

/** Whether a topic has a transaction, and it counts: of one that lost its conflict, a peer may have the proof. */
export async function isHeld(
  store: Holdings,
  { topic, txid }: { topic: string; txid: string },
): Promise<boolean> {
  return (await store.isApplied(topic, txid)) && (await store.winnerOver(txid)) === undefined
}
