import { yieldBetweenStatements } from './yield-to-event-loop.js'

/**
 * Conflict resolution: which transactions are active (`spec/overlay.md`, One spender, one name; `docs/conflicts.md`).
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

/** What the network said last of a transaction itself (`docs/conflicts.md`, Sightings). */
export type Sighting = 'seen' | 'rejected'

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

/** What a decision reads from a store. Transactions that the store does not know count as active. */
export interface ConflictView {
  /** The statuses of those that are known. */
  statuses(txids: string[]): Promise<TransactionStatus[]>
  /** The txids that a transaction spends from. */
  parents(txid: string): Promise<string[]>
  /** The txids that spend its outputs. */
  children(txid: string): Promise<string[]>
  /**
   * The other transactions that spend the same outpoints. A transaction that the names topic found to be no mint is no
   * spender of a node (`spec/overlay.md`, gap 11): over a node it conflicts with none.
   */
  conflicts(txid: string): Promise<string[]>
  /** How many of its outputs have records. */
  outputs(txid: string): Promise<number>
}

/** A transaction with so many inputs and outputs costs about twice as much to look at as the smallest. */
export const PARTS_OF_ONE = 20

/** What updating ranks needs besides. */
export interface RankedView extends ConflictView {
  /** The height that the transaction's own proof gives it. */
  heightOf(txid: string): Promise<number | undefined>
  /** What the network said last of the transaction itself. */
  sightingOf(txid: string): Promise<Sighting | undefined>
  setRank(status: TransactionStatus): Promise<void>
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

/**
 * Updates the ranks of transactions and of their ancestors, after a proof or a sighting was added or changed, or after a parent
 * was inserted later than its child.
 *
 * @returns Those whose rank has changed.
 */
export async function updateRanks(txids: string[], view: RankedView): Promise<string[]> {
  const changed = new Set<string>()
  const waiting: { txid: string; child?: TransactionStatus }[] = txids.map((txid) => ({ txid }))
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    await yieldBetweenStatements()
    const { txid, child } = next
    const [status] = await view.statuses([txid])
    if (status === undefined) continue
    const ranked = child === undefined ? await rankOf(status, view) : improvedBy(status, child)
    if (isSameRank(ranked, status)) continue
    await view.setRank(ranked)
    changed.add(txid)
    // If it improved, its parents need not look at all their other children.
    const isBetter = minedBy(ranked) <= minedBy(status) && (ranked.seen || !status.seen)
    for (const parent of await view.parents(txid))
      waiting.push({ txid: parent, ...(isBetter && { child: ranked }) })
  }
  return [...changed]
}

function isSameRank(one: TransactionStatus, other: TransactionStatus): boolean {
  return (
    one.mined === other.mined &&
    one.seen === other.seen &&
    one.rejected === other.rejected &&
    one.insertionOrder === other.insertionOrder
  )
}

/** The rank that follows from its own proof and sighting, and from all its children. */
async function rankOf(status: TransactionStatus, view: RankedView): Promise<TransactionStatus> {
  const children = await view.statuses(await view.children(status.txid))
  const mined = await view.heightOf(status.txid)
  const sighting = await view.sightingOf(status.txid)
  const seen = mined !== undefined || sighting === 'seen'
  return children.reduce(improvedBy, { ...status, mined, seen, rejected: sighting === 'rejected' })
}

/** Its rank, raised above that of a child. */
function improvedBy(status: TransactionStatus, child: TransactionStatus): TransactionStatus {
  const heights = [status.mined, child.mined].filter((height) => height !== undefined)
  return {
    ...status,
    mined: heights.length === 0 ? undefined : Math.min(...heights),
    seen: status.seen || child.seen,
    insertionOrder: Math.min(status.insertionOrder, child.insertionOrder - 1),
  }
}

/** What a decision changes, as txids. */
export interface Decision {
  deactivated: string[]
  restored: string[]
}

/**
 * Decides again which transactions are active, after some were added or changed rank. Looks no further than the changes
 * reach.
 *
 * @returns The changes, and those still to be decided: the first of `txids` in a later call.
 */
export async function decide({
  txids,
  ranked,
  fresh = new Set(),
  view,
  limit = Number.POSITIVE_INFINITY,
}: {
  /** Transactions that are new or changed in something other than their rank. */
  txids: string[]
  /** Those whose rank changed. */
  ranked: string[]
  /** New transactions: those that are left over stay inactive until they are decided. */
  fresh?: ReadonlySet<string>
  view: ConflictView
  /** How many more to look at. */
  limit?: number
}): Promise<Decision & { left: string[] }> {
  const resolution = new Resolution(view)
  for (const txid of txids) await resolution.enqueue([txid])
  // One that ranks lower than before may have kept others inactive that rank better now.
  for (const txid of ranked) await resolution.enqueue([txid, ...(await view.conflicts(txid))])
  const most = resolution.waiting + limit
  while (resolution.effort < most) {
    const next = resolution.take()
    if (next === undefined) break
    await yieldBetweenStatements()
    const isInactive = (await resolution.reasonAgainst(next)) !== undefined
    // One that double-spends what thousands have spent stays inactive until all of these are overruled.
    if (!isInactive && !(await resolution.overrule(next, most))) return await resolution.leave(fresh, next)
    if (isInactive !== next.isInactive) await resolution.toggle(next)
  }
  return await resolution.leave(fresh)
}

/**
 * Why a transaction is inactive: the active double spend that it or an inactive ancestor lost to, or the one of these that the
 * network rejected.
 *
 * @returns The status of that transaction; undefined if the transaction is active.
 */
export async function reasonAgainst(
  txid: string,
  view: ConflictView,
): Promise<TransactionStatus | undefined> {
  const resolution = new Resolution(view)
  const visited = new Set<string>()
  for (let [loser] = await view.statuses([txid]); loser?.isInactive; ) {
    const reason = await resolution.reasonAgainst(loser)
    if (reason === undefined || visited.has(loser.txid)) return undefined
    if (!reason.isInactive || reason.txid === loser.txid) return reason
    visited.add(loser.txid)
    loser = reason
  }
  return undefined
}

/** The statuses as decided so far, and a queue of those to look at, best rank first. */
class Resolution {
  private readonly known = new Map<string, TransactionStatus>()
  private readonly before = new Map<string, boolean>()
  private readonly queue: TransactionStatus[] = []
  private readonly queued = new Set<string>()
  private readonly overruled = new Set<string>()
  /** How much was looked at so far, in transactions. */
  effort = 0

  constructor(private readonly view: ConflictView) {}

  /** The length of the queue. */
  get waiting(): number {
    return this.queue.length
  }

  get changes(): Decision {
    const changed = [...this.before]
      .map(([txid, was]) => ({ status: this.known.get(txid), was }))
      .flatMap(({ status, was }) => (status && status.isInactive !== was ? [status] : []))
    return {
      deactivated: changed.filter(({ isInactive }) => isInactive).map(({ txid }) => txid),
      restored: changed.filter(({ isInactive }) => !isInactive).map(({ txid }) => txid),
    }
  }

  /** @param than Skips those that rank better than this one. */
  async enqueue(txids: string[], than?: TransactionStatus): Promise<void> {
    for (const status of await this.statuses(txids)) {
      if (this.queued.has(status.txid)) continue
      if (than !== undefined && compareRanks(status, than) < 0) continue
      this.queued.add(status.txid)
      this.queue.splice(this.placeOf(status), 0, status)
    }
  }

  take(): TransactionStatus | undefined {
    for (;;) {
      // The best is last, so that taking it moves nothing.
      const next = this.queue.pop()
      if (next === undefined) return undefined
      this.queued.delete(next.txid)
      this.effort++
      if (!this.overruled.has(next.txid)) return next
    }
  }

  /**
   * Empties the queue into `left`.
   *
   * @param fresh Those that stay inactive until they are decided.
   * @param first One that stays inactive too, without being among these.
   */
  async leave(fresh: ReadonlySet<string>, first?: TransactionStatus): Promise<Decision & { left: string[] }> {
    const left: string[] = []
    for (let next = first ?? this.take(); next !== undefined; next = this.take()) {
      left.push(next.txid)
      if (next.isInactive || (next !== first && !fresh.has(next.txid))) continue
      if (!this.before.has(next.txid)) this.before.set(next.txid, false)
      next.isInactive = true
      await this.enqueue(await this.view.children(next.txid), next)
    }
    return { ...this.changes, left }
  }

  /**
   * Deactivates or restores a transaction and enqueues those that this may change. They all rank below it, as children do: so
   * what was looked at stays decided, and the loop ends.
   */
  async toggle(status: TransactionStatus): Promise<void> {
    const { txid, isInactive } = status
    if (!this.before.has(txid)) this.before.set(txid, isInactive)
    status.isInactive = !isInactive
    this.effort += (await this.view.outputs(txid)) / PARTS_OF_ONE
    await this.enqueue(await this.view.children(txid), status)
    if (status.isInactive) await this.enqueue(await this.view.conflicts(txid), status)
  }

  /**
   * Deactivates the lower-ranked double spends of an active transaction: they need not be decided one by one.
   *
   * @param most Once this much was looked at, the others are left alone, except for one.
   * @returns Whether none is left.
   */
  async overrule(status: TransactionStatus, most: number): Promise<boolean> {
    let any = false
    for (const other of await this.statuses(await this.view.conflicts(status.txid))) {
      if (compareRanks(other, status) < 0 || this.overruled.has(other.txid)) continue
      if (!other.isInactive && any && this.effort >= most) return false
      this.overruled.add(other.txid)
      if (other.isInactive) continue
      any = true
      this.effort++
      await this.toggle(other)
    }
    return true
  }

  /**
   * What makes a transaction inactive: itself, if it was rejected; an inactive parent; or the best active double spend that ranks
   * above it.
   */
  async reasonAgainst(status: TransactionStatus): Promise<TransactionStatus | undefined> {
    if (isRejected(status)) return status
    const spent = await this.view.parents(status.txid)
    this.effort += spent.length / PARTS_OF_ONE
    const parents = await this.statuses(spent)
    const lost = parents.find(({ isInactive }) => isInactive)
    if (lost !== undefined) return lost
    const others = await this.statuses(await this.view.conflicts(status.txid))
    return others
      .filter((other) => !other.isInactive && compareRanks(other, status) < 0)
      .sort(compareRanks)[0]
  }

  private async statuses(txids: string[]): Promise<TransactionStatus[]> {
    const missing = [...new Set(txids)].filter((txid) => !this.known.has(txid))
    if (missing.length > 0)
      for (const status of await this.view.statuses(missing)) this.known.set(status.txid, status)
    return [...new Set(txids)].flatMap((txid) => this.known.get(txid) ?? [])
  }

  private placeOf(status: TransactionStatus): number {
    let low = 0
    let high = this.queue.length
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.queue[middle]
      if (other !== undefined && compareRanks(other, status) > 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
