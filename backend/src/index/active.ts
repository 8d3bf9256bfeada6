import type { Sql } from '../facts/connection.js'
import { compareRanks, isRejected, type TransactionStatus, tierOf } from '../graph/conflict-resolution.js'
import type { Reason } from '../graph/errors.js'
import { Heap } from './heap.js'

/*
 * Which transactions are active (`docs/conflicts.md`; `conflict-resolution.ts` has the rules and the order of ranks): of all that
 * spend one outpoint, the best-ranked one whose parents are all active and that was not rejected.
 */

/** The status of a transaction, by the id of its row. */
export interface RankedTransaction extends TransactionStatus {
  id: number
}

/** What a decision reads. Transactions that are only referred to have no status, and count as active. */
export interface ActiveView {
  status(id: number): RankedTransaction | undefined
  /** The transactions that one spends from. */
  parents(id: number): number[]
  /** The transactions that spend from one. */
  children(id: number): number[]
  /** The other transactions that spend the same; over a node, only mints. */
  conflicts(id: number): number[]
}

/**
 * Decides again which transactions are active. Looks no further than the changes reach, best rank first: what was decided stays
 * so, as every transaction ranks below all that it depends on.
 *
 * @param ids Those that are new or changed, and those that conflict with one whose rank changed.
 * @returns Those that became active or inactive, in the order of their ranks.
 */
export function decide(ids: Iterable<number>, view: ActiveView): RankedTransaction[] {
  const statuses = new Map<number, RankedTransaction | undefined>()
  const statusOf = (id: number): RankedTransaction | undefined => {
    if (!statuses.has(id)) statuses.set(id, view.status(id))
    return statuses.get(id)
  }
  const queue = new Heap<RankedTransaction>((one, other) => compareRanks(one, other) < 0)
  const queued = new Set<number>()
  const add = (id: number, than?: RankedTransaction): void => {
    const status = statusOf(id)
    if (status === undefined || queued.has(id) || (than && compareRanks(status, than) < 0)) return
    queued.add(id)
    queue.push(status)
  }
  for (const id of ids) add(id)
  const changed: RankedTransaction[] = []
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    queued.delete(next.id)
    const conflicts = view.conflicts(next.id).flatMap((id) => statusOf(id) ?? [])
    const isInactive = reasonAgainst(next, { conflicts, parents: () => parentsOf(next.id) }) !== undefined
    const isChanged = isInactive !== next.isInactive
    if (isChanged) {
      next.isInactive = isInactive
      changed.push(next)
      for (const child of view.children(next.id)) add(child, next)
    }
    for (const other of conflicts) if (isChanged || !(isInactive || other.isInactive)) add(other.id, next)
  }
  return changed

  function parentsOf(id: number): RankedTransaction[] {
    return view.parents(id).flatMap((each) => statusOf(each) ?? [])
  }
}

/** What makes a transaction inactive: itself, if it was rejected; an inactive parent; or the best active double spend that ranks above it. */
function reasonAgainst(
  status: RankedTransaction,
  { conflicts, parents }: { conflicts: RankedTransaction[]; parents: () => RankedTransaction[] },
): RankedTransaction | undefined {
  if (isRejected(status)) return status
  const lost = parents().find(({ isInactive }) => isInactive)
  if (lost !== undefined) return lost
  let best: RankedTransaction | undefined
  for (const other of conflicts)
    if (!other.isInactive && compareRanks(other, best ?? status) < 0) best = other
  return best
}

/** The status of a stored transaction; undefined if it is not stored. */
export function statusIn(sql: Sql, by: { id: number } | { txid: string }): RankedTransaction | undefined {
  const columns = 'select id, txid, ord, mined, seen, said, active from tx'
  const row =
    'id' in by
      ? sql.get(`${columns} where id = ? and seq is not null`, by.id)
      : sql.get(`${columns} where txid = ? and seq is not null`, Buffer.from(by.txid, 'hex'))
  if (row === undefined) return undefined
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
 * The order of `compareRanks` for rows of `tx`, best first. By it one of two active outputs at one step counts: those of a mint and of
 * another transaction that spend one node.
 */
export const BY_RANK = 'tx.mined is null, tx.mined, tx.seen desc, tx.ord, tx.txid'

/** What decisions read of an index. */
export function activeView(sql: Sql): ActiveView {
  const ids = (statement: string, id: number): number[] => sql.all(statement, id).map((row) => row.id)
  return {
    status: (id) => statusIn(sql, { id }),
    parents: (id) => ids('select distinct pid as id from spend where sid = ?', id),
    children: (id) => ids('select distinct sid as id from spend where pid = ?', id),
    conflicts: (id) => conflictsIn(sql, id),
  }
}

/**
 * The other transactions that spend the same. Over a node, only mints conflict, as nothing else can spend one
 * (`spec/overlay.md`, gap 11).
 */
export function conflictsIn(sql: Sql, id: number): number[] {
  const shared = sql.all(
    `select o.sid as id, t.mint, (select 1 from node n where n.tid = o.pid and n.vout = o.vout) as node
      from spend m join spend o on o.pid = m.pid and o.vout = m.vout and o.sid <> m.sid join tx t on t.id = o.sid
      where m.sid = ?`,
    id,
  )
  if (shared.length === 0) return []
  const isMint =
    shared.some(({ node }) => node === 1) && sql.get('select mint from tx where id = ?', id)?.mint === 1
  const found = shared.filter(({ node, mint }) => node !== 1 || (isMint && mint === 1))
  return [...new Set(found.map((row): number => row.id))]
}

/** See `TransactionsReader.reasonAgainst`. For readers as well. */
export function reasonIn(sql: Sql, txid: string): Reason | undefined {
  const view = activeView(sql)
  const statuses = (ids: number[]): RankedTransaction[] => ids.flatMap((id) => view.status(id) ?? [])
  const visited = new Set<number>()
  for (let loser = statusIn(sql, { txid }); loser?.isInactive && !visited.has(loser.id); ) {
    visited.add(loser.id)
    const { id } = loser
    const reason = reasonAgainst(loser, {
      conflicts: statuses(view.conflicts(id)),
      parents: () => statuses(view.parents(id)),
    })
    if (reason === undefined) return undefined
    if (!reason.isInactive || reason.id === id)
      return { txid: reason.txid, tier: reason.isInactive ? 'rejected' : tierOf(reason) }
    loser = reason
  }
  return undefined
}
