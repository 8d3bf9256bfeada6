import type { Sql } from '../facts/connection.js'
import { dependency } from '../graph/dependencies.js'
import { recencyOf } from '../graph/listings.js'
import { conflictsIn } from './active.js'
import type { Agenda } from './agenda.js'
import { Heap } from './heap.js'
import type { Journal } from './journal.js'
import type { TransactionRow, Transactions } from './transactions.js'

/** What ranks a transaction among those that it conflicts with, but for its txid (`conflict-resolution.ts`). */
export interface Rank {
  ord: number
  own: number | null
  mined: number | null
  seen: number
}

/** Between the places of two facts is room for so many parents that come after their children, one before the other. */
const ORDER_GAP = 2 ** 20

/** A rank, raised above that of a child. */
export function improvedBy<Ranked extends Rank>(
  rank: Ranked,
  child: Pick<Rank, 'ord' | 'mined' | 'seen'>,
): Ranked {
  const { ord, mined, seen } = rank
  return {
    ...rank,
    ord: Math.min(ord, child.ord - 1),
    mined: child.mined === null ? mined : mined === null ? child.mined : Math.min(mined, child.mined),
    seen: seen | child.seen,
  }
}

/** The rank of a transaction without children. @param own The lowest height of its proofs that count. */
export function rankBy(seq: number, own: number | null, said: number | null): Rank {
  return { ord: seq * ORDER_GAP, own, mined: own, seen: own !== null || said === 1 ? 1 : 0 }
}

/** Keeps the ranks of transactions: each follows from its own proofs and sighting, and from its children. */
export class Ranks {
  constructor(
    private readonly sql: Sql,
    private readonly tables: { transactions: Transactions; journal: Journal; agenda: Agenda },
  ) {}

  /** The rank by its own facts. */
  ownRank(id: number, seq: number, said: number | null): Rank {
    const proof = this.sql.get('select min(height) as height from proof where tid = ? and ok = 1', id)
    return rankBy(seq, proof?.height ?? null, said)
  }

  /** Raises a stored transaction and its ancestors above one of its children. */
  improve(parent: TransactionRow, child: Pick<Rank, 'ord' | 'mined' | 'seen'>): void {
    const waiting = [{ row: parent, child }]
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (isSame(improvedBy(next.row, next.child), next.row)) continue
      // It may have been improved since it was read.
      const row = this.tables.transactions.byId(next.row.id)
      const better = improvedBy(row, next.child)
      if (!this.write(row, better)) continue
      for (const each of this.tables.transactions.parents(row.id)) waiting.push({ row: each, child: better })
    }
  }

  /** Ranks transactions again whose own facts have changed, and their ancestors. */
  rank(ids: Iterable<number>): void {
    const { transactions } = this.tables
    // Children first: so each is ranked once, however many of its children have changed.
    const queue = new Heap<TransactionRow>((one, other) => one.ord > other.ord)
    const queued = new Set<number>()
    const push = (row: TransactionRow): void => {
      if (row.seq === null || queued.has(row.id)) return
      queued.add(row.id)
      queue.push(row)
    }
    for (const id of ids) push(transactions.byId(id))
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      queued.delete(next.id)
      const row = transactions.byId(next.id)
      const own = { ...row, ...this.ownRank(row.id, row.seq ?? 0, row.said) }
      const rank = transactions.children(row.id).reduce(improvedBy, own)
      if (!this.write(row, rank)) continue
      // If it improved, its parents need not look at all their other children.
      const better = isBetter(rank, row)
      for (const parent of transactions.parents(row.id))
        if (better) this.improve(parent, rank)
        else push(parent)
    }
  }

  /** @returns Whether anything has changed that its ancestors depend on. */
  private write(row: TransactionRow, rank: Rank): boolean {
    const { id } = row
    const { ord, own, mined, seen } = rank
    if (isSame(rank, row)) return false
    const { transactions, journal, agenda } = this.tables
    this.sql.run(
      'update tx set ord = ?, own = ?, mined = ?, seen = ? where id = ?',
      ord,
      own,
      mined,
      seen,
      id,
    )
    if (own !== row.own || (own === null && ord !== row.ord)) this.sortAgain(id, rank)
    if (mined !== row.mined || seen !== row.seen) {
      const txid = transactions.txidOf(id).toString('hex')
      if (!isBetter(rank, row)) journal.lowered.push(txid)
      journal.change(dependency.tier(txid))
    }
    const conflicts = conflictsIn(this.sql, id)
    // What a better rank changes for others follows from whether it counts.
    if (!isBetter(rank, row)) for (const each of conflicts) agenda.toDecide.add(each)
    if (conflicts.length > 0 || (row.said === 0 && seen !== row.seen)) agenda.toDecide.add(id)
    return ord !== row.ord || mined !== row.mined || seen !== row.seen
  }

  /** Puts its outputs into another place of the lists of what is newest. */
  private sortAgain(id: number, { own, ord }: Rank): void {
    const recency = recencyOf({ height: own ?? undefined, insertionOrder: ord })
    const { journal } = this.tables
    if (this.sql.run('update name set recency = ? where tid = ?', recency, id) > 0)
      journal.change(dependency.names)
    if (this.sql.run('update out set recency = ? where tid = ? and recency is not null', recency, id) > 0)
      journal.change(dependency.inscriptions)
  }
}

/** Whether a rank is no worse than another by proofs and sightings. */
function isBetter(rank: Rank, other: Rank): boolean {
  return rank.seen >= other.seen && heightOf(rank) <= heightOf(other)
}

function heightOf({ mined }: Pick<Rank, 'mined'>): number {
  return mined ?? Number.POSITIVE_INFINITY
}

function isSame(one: Rank, other: Rank): boolean {
  return (
    one.ord === other.ord && one.own === other.own && one.mined === other.mined && one.seen === other.seen
  )
}
