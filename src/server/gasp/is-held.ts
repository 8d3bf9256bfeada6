import type { GraphStore } from '../../../backend/src/graph/graph-store.js'

/** What tells whether a transaction need not come again. */
export type Holdings = Pick<GraphStore, 'transactions' | 'admissions'>

/** Whether a topic has a transaction, and it counts: of one that lost its conflict, a peer may have the proof. */
export async function isHeld(
  store: Holdings,
  { topic, txid }: { topic: string; txid: string },
): Promise<boolean> {
  return (
    (await store.admissions.isApplied(topic, txid)) &&
    (await store.transactions.winnerOver(txid)) === undefined
  )
}
