import type { Row, Sql } from '../facts/connection.js'
import { compareRanks, isRejected, type TransactionStatus, tierOf } from '../graph/conflict-resolution.js'
import { dependency } from '../graph/dependencies.js'
import type { Reason } from '../graph/errors.js'
import { recencyOf } from '../graph/listings.js'
import { Heap } from './heap.js'
import type { Agenda, Journal } from './journal.js'
import type { TransactionRow, Transactions } from './transactions.js'

/*
 * Which transactions are active (`docs/spec/overlay.md`; `conflict-resolution.ts` has the rules and the order of ranks): of all that
 * spend one outpoint, the best-ranked one whose parents are all active and that was not rejected.
 */

/** The status of a transaction, by the id of its row. */
interface RankedTransaction extends TransactionStatus {
  id: number
}

/** An outpoint that a transaction spends, and over which it may conflict with others. */
interface Coin {
  pid: number
  vout: number
  /** Whether it is a node: then only mints conflict, as nothing else can spend one (`docs/spec/overlay.md`, Conflicts). */
  node: 0 | 1
}

/** All transactions that conflict over a coin, and the active ones. */
interface Contest {
  all: RankedTransaction[]
  active: Set<RankedTransaction>
}

/**
 * Decides again which transactions are active, best rank first, as far as the changes reach. No decision is revised, as every
 * transaction ranks below all that it depends on. Each coin is read once, however many spend it.
 *
 * @param ids New and changed transactions, and those that conflict with one whose rank got worse.
 * @returns Those that became active or inactive, in the order of their ranks.
 */
export function decide(ids: Iterable<number>, sql: Sql): RankedTransaction[] {
  const statuses = new Map<number, RankedTransaction | undefined>()
  const statusOf = (id: number): RankedTransaction | undefined => {
    if (!statuses.has(id)) statuses.set(id, statusIn(sql, { id }))
    return statuses.get(id)
  }
  const contests = new Map<string, Contest>()
  const contestOf = (coin: Coin): Contest => {
    const key = `${coin.pid} ${coin.vout} ${coin.node}`
    let contest = contests.get(key)
    if (contest === undefined) {
      const all = sql.all(SPENDERS, coin.pid, coin.vout, coin.node).map((row) => {
        const status = statuses.get(row.id) ?? statusOfRow(row)
        statuses.set(status.id, status)
        return status
      })
      contest = { all, active: new Set(all.filter(({ isInactive }) => !isInactive)) }
      contests.set(key, contest)
    }
    return contest
  }
  const queue = new Heap<RankedTransaction>((one, other) => compareRanks(one, other) < 0)
  const queued = new Set<number>()
  const add = (status: RankedTransaction | undefined, than?: RankedTransaction): void => {
    if (status === undefined || queued.has(status.id) || (than && compareRanks(status, than) <= 0)) return
    queued.add(status.id)
    queue.push(status)
  }
  for (const id of ids) add(statusOf(id))
  const changed: RankedTransaction[] = []
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    queued.delete(next.id)
    const { id } = next
    const ownContests = coinsOf(sql, id).map(contestOf)
    const opponents = ownContests.flatMap(({ active }) => [...active])
    const parents = (): RankedTransaction[] => parentsOf(sql, id).flatMap((each) => statusOf(each) ?? [])
    const isInactive = reasonAgainst(next, { opponents, parents }) !== undefined
    const isChanged = isInactive !== next.isInactive
    if (isChanged) {
      next.isInactive = isInactive
      changed.push(next)
      for (const child of sql.all('select distinct sid as id from spend where pid = ?', id))
        add(statusOf(child.id), next)
    }
    for (const { all, active } of ownContests) {
      if (isInactive) active.delete(next)
      else active.add(next)
      // An active one displaces others on its coins; one that became inactive makes room, unless a better one is active.
      if (!isInactive) for (const other of active) add(other, next)
      else if (isChanged && !hasBetter(active, next)) for (const other of all) add(other, next)
    }
  }
  return changed
}

/**
 * Why a transaction is inactive: itself, if it was rejected; an inactive parent; or the best active double spend that ranks above
 * it.
 */
function reasonAgainst(
  status: RankedTransaction,
  { opponents, parents }: { opponents: Iterable<RankedTransaction>; parents: () => RankedTransaction[] },
): RankedTransaction | undefined {
  if (isRejected(status)) return status
  const lost = parents().find(({ isInactive }) => isInactive)
  if (lost !== undefined) return lost
  let best: RankedTransaction | undefined
  for (const other of opponents) if (compareRanks(other, best ?? status) < 0) best = other
  return best
}

function hasBetter(some: Iterable<RankedTransaction>, than: RankedTransaction): boolean {
  for (const each of some) if (compareRanks(each, than) < 0) return true
  return false
}

/** The status of a stored transaction; undefined if it is not stored. */
export function statusIn(sql: Sql, by: { id: number } | { txid: string }): RankedTransaction | undefined {
  const columns = 'select id, txid, ord, mined, seen, said, active from tx'
  const row =
    'id' in by
      ? sql.get(`${columns} where id = ? and seq is not null`, by.id)
      : sql.get(`${columns} where txid = ? and seq is not null`, Buffer.from(by.txid, 'hex'))
  return row && statusOfRow(row)
}

function statusOfRow(row: Row): RankedTransaction {
  return {
    id: row.id,
    txid: row.txid.toString('hex'),
    mined: row.mined ?? undefined,
    seen: row.seen === 1,
    rejected: row.said === 0,
    insertionOrder: row.ord,
    isInactive: row.active === 0,
  }
}

/**
 * The order of `compareRanks` for rows of `tx`, best first. It also breaks the tie between two active outputs at one step, where
 * a mint and another transaction spend one node.
 */
export const BY_RANK = 'tx.mined is null, tx.mined, tx.seen desc, tx.ord, tx.txid, out.vout'

const SPENDERS = `select t.id, t.txid, t.ord, t.mined, t.seen, t.said, t.active from spend s join tx t on t.id = s.sid
  where s.pid = ? and s.vout = ? and (t.mint = 1 or ? = 0)`
const COINS = `select s.pid, s.vout, t.mint, exists (select 1 from node n where n.tid = s.pid and n.vout = s.vout) as node
  from spend s join tx t on t.id = s.sid where s.sid = ?`

/** The coins over which a transaction may conflict with others. */
function coinsOf(sql: Sql, id: number): Coin[] {
  return sql.all(COINS, id).filter(({ node, mint }) => node === 0 || mint === 1) as Coin[]
}

/** The transactions that one spends from. Those that are not stored have no status, and count as active. */
function parentsOf(sql: Sql, id: number): number[] {
  return sql.all('select distinct pid as id from spend where sid = ?', id).map((row) => row.id)
}

/** The other transactions that spend the same coins. */
function conflictsIn(sql: Sql, id: number): number[] {
  const found = coinsOf(sql, id).flatMap(({ pid, vout, node }) =>
    sql.all(SPENDERS, pid, vout, node).map((row): number => row.id),
  )
  return [...new Set(found)].filter((other) => other !== id)
}

/** See `TransactionsReader.reasonAgainst`. For readers as well. */
export function reasonIn(sql: Sql, txid: string): Reason | undefined {
  const statuses = (ids: number[]): RankedTransaction[] => ids.flatMap((id) => statusIn(sql, { id }) ?? [])
  const visited = new Set<number>()
  for (let loser = statusIn(sql, { txid }); loser?.isInactive && !visited.has(loser.id); ) {
    visited.add(loser.id)
    const { id } = loser
    const reason = reasonAgainst(loser, {
      opponents: statuses(conflictsIn(sql, id)).filter(({ isInactive }) => !isInactive),
      parents: () => statuses(parentsOf(sql, id)),
    })
    if (reason === undefined) return undefined
    if (!reason.isInactive || reason.id === id)
      return { txid: reason.txid, tier: reason.isInactive ? 'rejected' : tierOf(reason) }
    loser = reason
  }
  return undefined
}

/** The rank of a transaction among those that it conflicts with, except for its txid (`conflict-resolution.ts`). */
interface Rank {
  ord: number
  own: number | null
  mined: number | null
  seen: number
}

/** Room between the places of two facts for parents that came after their children, each ordered before its child. */
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

/** Maintains the ranks of transactions: each follows from its own proofs and sighting, and from its children. */
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

  /** Ranks transactions whose own facts have changed again, and their ancestors. */
  rank(ids: Iterable<number>): void {
    const { transactions } = this.tables
    // Children first, so that each is ranked once, however many of its children have changed.
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
    // A better rank affects others only through the transaction's own status.
    if (!isBetter(rank, row)) for (const each of conflicts) agenda.toDecide.add(each)
    if (conflicts.length > 0 || (row.said === 0 && seen !== row.seen)) agenda.toDecide.add(id)
    return ord !== row.ord || mined !== row.mined || seen !== row.seen
  }

  /** Moves its outputs within the lists of the newest. */
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
