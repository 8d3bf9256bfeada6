/**
 * Conflict resolution: which transactions are active (`docs/spec/overlay.md`, Conflicts).
 *
 * Of all transactions that spend one outpoint, one is active at any time: the best-ranked one whose parents are all active and
 * that was not rejected. The others are inactive, and so is everything built on them. Ranks are a total order in which a
 * transaction ranks below all that it spends from. So the result does not depend on the order of insertion, and a transaction
 * that conflicts with its own ancestors is never active.
 */

/** What conflict resolution knows and has decided about a transaction. */
export interface TransactionStatus {
  txid: string
  /** The lowest height of a block that proves it or a descendant; undefined if there is none. */
  mined: number | undefined
  /** Whether the network is known to have it or a descendant. Mined transactions were seen. */
  seen: boolean
  /** Whether the network refused it, by its last sighting. It counts nevertheless if a descendant is seen or mined. */
  rejected: boolean
  /** Its place in insertion order: before all its children, even those inserted first. */
  insertionOrder: number
  isInactive: boolean
}

/** What the network last said about a transaction itself (`docs/spec/overlay.md`, Sightings). */
export type Sighting = 'seen' | 'rejected'

/** What the network last said about a transaction. */
export interface SightingRecord {
  txid: string
  status: Sighting
}

export interface RecordedSightings {
  /** Those that are new or have changed. */
  changed: SightingRecord[]
  /** The transactions that became active or inactive because of them. */
  restored: string[]
  deactivated: string[]
}

/** How far a transaction is known to the network, by itself or by a descendant. It ranks before insertion order. */
export type Tier = 'proven' | 'seen' | 'unseen'

export function tierOf({ mined, seen }: Pick<TransactionStatus, 'mined' | 'seen'>): Tier {
  if (mined !== undefined) return 'proven'
  return seen ? 'seen' : 'unseen'
}

/** Whether a transaction was rejected, so that neither it nor its descendants count. */
export function isRejected({ rejected, seen }: Pick<TransactionStatus, 'rejected' | 'seen'>): boolean {
  return rejected && !seen
}

/** Its height for comparison: unproven transactions come after all heights. */
function minedBy({ mined }: TransactionStatus): number {
  return mined ?? Number.POSITIVE_INFINITY
}

/** Below 0 if the first ranks better: mined by height, then seen, then unseen; of equals, by insertion order. */
export function compareRanks(one: TransactionStatus, other: TransactionStatus): number {
  const [mined, otherMined] = [minedBy(one), minedBy(other)]
  if (mined !== otherMined) return mined - otherMined
  return (
    Number(other.seen) - Number(one.seen) ||
    one.insertionOrder - other.insertionOrder ||
    (one.txid < other.txid ? -1 : one.txid === other.txid ? 0 : 1)
  )
}
