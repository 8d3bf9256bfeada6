/**
 * Conflict resolution: which transactions are active (`docs/spec/overlay.md`, Conflicts).
 *
 * Of all transactions that spend one outpoint, one is active at any time: the best-ranked one whose parents are all active and
 * that was not rejected. The others are inactive, and so is everything built on them. Ranks are a total order in which a transaction ranks below
 * whatever it spends. So the result does not depend on the order of insertion, and a transaction that conflicts with its own
 * ancestors is never active.
 */

/** What conflict resolution knows of a transaction, and has decided. */
export interface TransactionStatus {
  txid: string
  /** The lowest height of a block that proves it or a descendant; undefined if there is none. */
  mined: number | undefined
  /** Whether the network is known to have it or a descendant. Whatever is mined was seen. */
  seen: boolean
  /** Whether the network refused it, as far as was last heard. It counts nevertheless if it is seen or mined by a descendant. */
  rejected: boolean
  /** Its place in insertion order: before all its children, even those inserted first. */
  insertionOrder: number
  isInactive: boolean
}

/** What the network said last of a transaction itself (`docs/spec/overlay.md`, Sightings). */
export type Sighting = 'seen' | 'rejected'

/** What the network said last of a transaction. */
export interface SightingRecord {
  txid: string
  status: Sighting
}

export interface RecordedSightings {
  /** Those that are new, or say something else than before. */
  changed: SightingRecord[]
  /** The transactions that became active or inactive because of them. */
  restored: string[]
  deactivated: string[]
}

/** How far a transaction is known to the network, by itself or by a descendant: what ranks it before its insertion order. */
export type Tier = 'proven' | 'seen' | 'unseen'

export function tierOf({ mined, seen }: Pick<TransactionStatus, 'mined' | 'seen'>): Tier {
  if (mined !== undefined) return 'proven'
  return seen ? 'seen' : 'unseen'
}

/** Whether a transaction counts for nothing, and neither does what is built on it. */
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
