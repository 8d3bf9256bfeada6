import type { Sql } from '../facts/connection.js'
import type { Pending, PendingTransaction } from '../facts/state.js'
import type { PendingLimits } from '../graph/admission-rules.js'
import type { TransactionRecord } from '../graph/records.js'
import { viewOf } from '../graph/stored-transaction.js'
import { spendsBy } from '../graph/transaction-records.js'
import { fromHex, toHex } from '../protocol/bytes.js'
import type { Outpoint } from '../protocol/outpoint.js'

/** A transaction that may enter the log, with what it spends. */
export interface Candidate extends TransactionRecord {
  spends: readonly Outpoint[]
  /** Set if it is pending. */
  pending?: Pick<PendingTransaction, 'arrived' | 'isWaiting'>
}

export function candidateOf(record: TransactionRecord): Candidate {
  return { ...record, spends: spendsBy(viewOf(record)).map(({ outpoint }) => outpoint) }
}

/** What an index says of the transactions around a candidate. */
export class IndexedSpends {
  constructor(private readonly index: Sql) {}

  /** The stored transactions that spend an outpoint. */
  spendersOf({ txid, vout }: Outpoint): string[] {
    return this.txids(
      `select spender.txid from tx join spend on spend.pid = tx.id and spend.vout = ? join tx spender on spender.id = spend.sid
        where tx.txid = ?`,
      ...[vout, fromHex(txid)],
    )
  }

  /** Whether an active stored transaction spends an outpoint that is no node: over a node, only mints conflict. */
  hasActiveSpender({ txid, vout }: Outpoint): boolean {
    const row = this.index.get(
      `select 1 as one from tx join spend on spend.pid = tx.id and spend.vout = ?2 join tx spender on spender.id = spend.sid
        where tx.txid = ?1 and spender.active = 1
          and not exists (select 1 from node where node.tid = tx.id and node.vout = ?2) limit 1`,
      fromHex(txid),
      vout,
    )
    return row !== undefined
  }

  /** Whether a stored transaction spends an output of this one, other than these. */
  hasChildBeside(txid: string, others: ReadonlySet<string>): boolean {
    return this.txids(
      'select spender.txid from tx join spend on spend.pid = tx.id join tx spender on spender.id = spend.sid where tx.txid = ?',
      fromHex(txid),
    ).some((child) => !others.has(child))
  }

  /** What a stored transaction spends. */
  spendsOf(txid: string): Outpoint[] {
    const rows = this.index.all(
      `select spent.txid, spend.vout from tx join spend on spend.sid = tx.id join tx spent on spent.id = spend.pid
        where tx.txid = ?`,
      fromHex(txid),
    )
    return rows.map(({ txid, vout }) => ({ txid: toHex(txid), vout }))
  }

  /** Whether the network said that it has this transaction, whether it is stored or not. */
  isSeen(txid: string): boolean {
    return this.index.get('select 1 as one from tx where txid = ? and said = 1', fromHex(txid)) !== undefined
  }

  private txids(sql: string, ...values: (number | Uint8Array)[]): string[] {
    return this.index.all(sql, ...values).map(({ txid }) => toHex(txid))
  }
}

/**
 * The pending transactions without which it cannot be decided whether these count, in the order in which they came: their pending
 * ancestors, and what spends the same coins as any of them, with its ancestors. Of what is in a conflict also the descendants that
 * raise its rank: those that are proven or seen, or came before it. What lost already matters only as an ancestor, or if it does so.
 */
export function relatedTo(
  candidates: readonly Candidate[],
  { pending, indexed }: { pending: Pending; indexed: IndexedSpends },
): Candidate[] {
  if (pending.isEmpty) return []
  const given = new Set(candidates.map(({ txid }) => txid))
  const found = new Map<string, Candidate>()
  const queue = [...candidates]
  const spenders = new Map<string, Set<string>>()
  const spendersOf = (spent: Outpoint): Set<string> => {
    const key = `${spent.txid} ${spent.vout}`
    const known = spenders.get(key) ?? new Set(indexed.spendersOf(spent))
    spenders.set(key, known)
    return known
  }
  for (const { txid, spends } of candidates) for (const spent of spends) spendersOf(spent).add(txid)
  const add = (txid: string, { evenIfWaiting }: { evenIfWaiting: boolean }): void => {
    if (given.has(txid) || found.has(txid)) return
    const stored = pending.get(txid)
    if (stored === undefined || (stored.isWaiting && !evenIfWaiting)) return
    const { arrived, isWaiting, ...record } = stored
    const candidate = { ...candidateOf(record), pending: { arrived, isWaiting } }
    found.set(txid, candidate)
    queue.push(candidate)
  }
  for (const { txid, spends, pending: own } of queue) {
    let isContested = false
    for (const spent of spends) {
      const others = spendersOf(spent).add(txid)
      add(spent.txid, { evenIfWaiting: true })
      for (const other of pending.spendersOf(spent, { isWaiting: false })) {
        if (other !== txid) isContested = true
        add(other, { evenIfWaiting: false })
      }
      if (others.size > 1) isContested = true
    }
    const arrived = own?.arrived ?? Number.POSITIVE_INFINITY
    for (const each of isContested ? descendantsOf(txid, pending) : []) {
      const outline = pending.outline(each)
      const isKnown = outline?.isProven === true || indexed.isSeen(each)
      if (isKnown || (outline !== undefined && outline.arrived < arrived))
        add(each, { evenIfWaiting: isKnown })
    }
  }
  return [...found.values()].sort((one, other) => (one.pending?.arrived ?? 0) - (other.pending?.arrived ?? 0))
}

/** The pending descendants of a transaction. */
function descendantsOf(txid: string, pending: Pending): string[] {
  const found = new Set([txid])
  for (const each of found) for (const child of pending.childrenOf(each)) found.add(child)
  found.delete(txid)
  return [...found]
}

/** Whether two of the transactions spend one coin. */
export function isSpentTwice(candidates: readonly Candidate[]): boolean {
  const spent = new Set<string>()
  for (const { spends } of candidates)
    for (const { txid, vout } of spends) {
      const key = `${txid} ${vout}`
      if (spent.has(key)) return true
      spent.add(key)
    }
  return false
}

/**
 * Those of the transactions that are to be facts: what is needed by itself, what spends a coin that a fact or one of these spends,
 * and the ancestors of all of them among the candidates.
 *
 * @param isEligible Whether one may be a fact, whatever needs it.
 */
export function neededOf(
  candidates: readonly Candidate[],
  options: {
    isNeeded: (txid: string) => boolean
    isEligible: (candidate: Candidate) => boolean
    indexed: IndexedSpends
  },
): Set<string> {
  const { isNeeded, isEligible, indexed } = options
  const byTxid = new Map(candidates.map((each) => [each.txid, each]))
  const own = new Set(byTxid.keys())
  const spenders = new Map<string, string[]>()
  for (const { txid, spends } of candidates)
    for (const spent of spends) {
      const key = `${spent.txid} ${spent.vout}`
      spenders.set(key, [...(spenders.get(key) ?? []), txid])
    }
  const barred = new Set<string>()
  // Parents come first, but for pending ones: those are walked again.
  for (let before = -1; before < barred.size; ) {
    before = barred.size
    for (const each of candidates)
      if (!isEligible(each) || each.spends.some(({ txid }) => barred.has(txid))) barred.add(each.txid)
  }
  const isOpposed = (candidate: Candidate): boolean =>
    candidate.spends.some((spent) => indexed.spendersOf(spent).some((txid) => !own.has(txid)))
  const isFact = (each: Candidate): boolean =>
    isNeeded(each.txid) || indexed.hasChildBeside(each.txid, own) || isOpposed(each)
  const needed = new Set<string>()
  const add = (txid: string): void => {
    if (byTxid.has(txid) && !barred.has(txid)) needed.add(txid)
  }
  for (const each of candidates) if (!barred.has(each.txid) && isFact(each)) needed.add(each.txid)
  for (const txid of needed)
    for (const spent of byTxid.get(txid)?.spends ?? []) {
      add(spent.txid)
      for (const other of spenders.get(`${spent.txid} ${spent.vout}`) ?? []) add(other)
    }
  return needed
}

/** Whether these are no more than may wait in all. */
export function mayWait(
  candidates: readonly Candidate[],
  { maxTransactions, maxBytes }: PendingLimits,
): boolean {
  const bytes = candidates.reduce((sum, { raw }) => sum + raw.length, 0)
  return candidates.length <= maxTransactions && bytes <= maxBytes
}

/**
 * Deletes pending transactions until there is room: unproven ones before proven ones, the oldest first.
 *
 * @returns What may count without them.
 */
export function makeRoom(pending: Pending, limits: PendingLimits): string[] {
  const affected: string[] = []
  while (isOver(pending.total('pending'), limits)) {
    const first = pending.first()
    if (first === undefined) break
    affected.push(...deleted(pending, first))
  }
  return affected
}

/**
 * Deletes what waits until there is room: of the client that has the most, the oldest with all that is built on it. What is new
 * stays, with what it is built on. None of them counted, so nothing else counts because they are gone.
 */
export function makeRoomToWait(pending: Pending, limits: PendingLimits, fresh: readonly string[]): void {
  if (!isOver(pending.total('waiting'), limits)) return
  const waiting = new Map(pending.waiting().map((each) => [each.txid, each]))
  const staying = new Set(fresh)
  for (const txid of staying)
    for (const parent of pending.parentsOf(txid)) if (waiting.has(parent)) staying.add(parent)
  while (isOver(pending.total('waiting'), limits)) {
    const isByCount = pending.total('waiting').transactions > limits.maxTransactions
    const shares = new Map<string | undefined, number>()
    for (const { client, bytes } of waiting.values())
      shares.set(client, (shares.get(client) ?? 0) + (isByCount ? 1 : bytes))
    const candidates = [...waiting.values()].filter(({ txid }) => !staying.has(txid))
    const share = ({ client }: { client: string | undefined }): number => shares.get(client) ?? 0
    // A stable sort: of one client's, the oldest stays first.
    const [oldest] = candidates.sort((one, other) => share(other) - share(one))
    if (oldest === undefined) break
    const line = new Set([oldest.txid])
    for (const txid of line) {
      if (!waiting.delete(txid)) continue
      for (const child of pending.childrenOf(txid)) line.add(child)
      pending.delete(txid)
    }
  }
}

function isOver(
  { transactions, bytes }: { transactions: number; bytes: number },
  limits: PendingLimits,
): boolean {
  return transactions > limits.maxTransactions || bytes > limits.maxBytes
}

/** Deletes one. @returns Those that spend what it spent, or spend from it. */
function deleted(pending: Pending, txid: string): string[] {
  const affected = [...pending.conflictsOf(txid), ...pending.childrenOf(txid)]
  pending.delete(txid)
  return affected
}
