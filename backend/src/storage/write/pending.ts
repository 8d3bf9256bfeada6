import type { PendingLimits } from '../../graph/admission-rules.js'
import type { SpendRecord, TransactionRecord } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { groupBy } from '../rows/columns.js'
import { type PendingRecord, pendingRow } from '../rows/record-rows.js'
import type { GraphTables, PendingTotal, TransactionTables } from './graph-tables.js'

/**
 * Transactions with admitted outputs are kept for good, and so are their spenders and all known ancestors of both. All others
 * are pending: they may be needed later, and their number and size are limited. At the limit, unproven ones are deleted
 * first, oldest first.
 */

/** How many are read at once to make room. */
const PAGE = 50

interface Inserted {
  /** New transactions, or stored ones that are recorded again. */
  fresh: TransactionRecord[]
  /** The stored transactions that spend from these. */
  children: string[]
  /** Whether they are recorded again, and may be pending already. */
  again: boolean
  /** What these spend. */
  spends: SpendRecord[]
  /** Transactions that are to be kept for good. */
  kept: ReadonlySet<string>
  /** Stored transactions with a new proof. */
  proven: TransactionRecord[]
  /** Whether some are left to be judged and may have to be kept for good. */
  unjudged: boolean
  /** Kept transactions whose parents earlier writes left to be marked as kept. */
  left: string[]
}

/**
 * Updates which transactions are pending, and deletes some if there are too many.
 *
 * @param options.limit How many transactions to look at beside the fresh ones.
 * @returns The transactions to be decided again because others were deleted, and the kept ones whose parents are left.
 */
export async function keepPending(
  { transactions: tables }: GraphTables,
  { fresh, children, again, spends, kept, proven, unjudged, left: earlier }: Inserted,
  { limit, pending: limits }: { limit: number; pending: PendingLimits },
): Promise<{ changed: string[]; left: string[] }> {
  const before = await tables.pendingTotal()
  const total = { ...before }
  for (const { txid } of proven) if (before.transactions > 0) await tables.setPendingProven(txid)
  const anyPending = before.transactions > 0
  const { needed, left } = await neededBy(
    tables,
    { fresh, children, spends, kept, left: earlier },
    { anyPending, limit },
  )
  if (before.transactions > 0) {
    const released = await release(tables, needed)
    total.transactions -= released.length
    for (const { bytes } of released) total.bytes -= bytes
  }
  const pending = fresh.filter(({ txid }) => !needed.has(txid))
  if (pending.length > 0) {
    const statuses = await tables.statuses(pending.map(({ txid }) => txid))
    const order = new Map(statuses.map(({ txid, insertionOrder }) => [txid, insertionOrder]))
    const rows = pending.map(({ txid, raw, proof }) =>
      pendingRow({
        txid,
        proven: proof !== undefined,
        insertionOrder: order.get(txid) ?? 0,
        bytes: raw.length,
        waiting: false,
      }),
    )
    const listed = again ? await tables.pendingAmong(pending.map(({ txid }) => txid)) : []
    const counted = new Set(listed.map(({ txid }) => txid))
    await tables.insertNew('graph_pending', rows)
    for (const { txid, raw } of pending) {
      if (counted.has(txid)) continue
      total.transactions++
      total.bytes += raw.length
    }
  }
  // Delete nothing before it is known what must be kept; later writes then delete the excess.
  const isOpen = left.length > 0 || unjudged || (isOver(total, limits) && (await isAnyLeft(tables)))
  const changed = isOpen ? [] : await makeRoom(tables, { total, limits, most: fresh.length + limit })
  if (total.transactions !== before.transactions || total.bytes !== before.bytes)
    await tables.setPendingTotal(total)
  return { changed, left }
}

/** Those to be kept for good, with those ancestors that are new or pending. */
async function neededBy(
  tables: TransactionTables,
  { fresh, children: stored, spends, kept, left }: Omit<Inserted, 'again' | 'proven' | 'unjudged'>,
  { anyPending, limit }: { anyPending: boolean; limit: number },
): Promise<{ needed: Set<string>; left: string[] }> {
  const needed = new Set(kept)
  const isFresh = new Set(fresh.map(({ txid }) => txid))
  const spentBy = groupBy(spends, ({ spender }) => spender)
  const anyChildren = stored.some((child) => !isFresh.has(child))
  for (const txid of anyChildren ? isFresh : []) {
    if (needed.has(txid)) continue
    const children = (await tables.childrenOf([txid])).filter((child) => !isFresh.has(child))
    if (children.length === 0) continue
    const pending = anyPending ? await tables.pendingAmong(children) : []
    if (pending.length < children.length) needed.add(txid)
  }
  const waiting = [...left, ...needed]
  let others = 0
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    if (!isFresh.has(txid) && ++others > limit) {
      waiting.push(txid)
      break
    }
    const own = isFresh.has(txid) ? (spentBy.get(txid) ?? []) : await tables.spendsBy(txid)
    const parents = new Set(own.map(({ outpoint }) => outpoint.txid).filter((each) => !needed.has(each)))
    const known = [...parents].filter((parent) => !isFresh.has(parent))
    // Known ones that are not pending are kept already, and so are their ancestors.
    const pending = anyPending ? await tables.pendingAmong(known) : []
    for (const parent of [
      ...[...parents].filter((each) => isFresh.has(each)),
      ...pending.map((each) => each.txid),
    ]) {
      needed.add(parent)
      waiting.push(parent)
    }
    await yieldBetweenStatements()
  }
  return { needed, left: waiting }
}

async function release(tables: TransactionTables, needed: ReadonlySet<string>): Promise<PendingRecord[]> {
  const released = await tables.pendingAmong([...needed])
  await tables.deletePending(released.map(({ txid }) => txid))
  return released
}

async function isAnyLeft(tables: TransactionTables): Promise<boolean> {
  return (await tables.hasBacklog('keep')) || (await tables.hasBacklog('judge'))
}

function isOver(total: PendingTotal, { maxTransactions, maxBytes }: PendingLimits): boolean {
  return total.transactions > maxTransactions || total.bytes > maxBytes
}

/** Deletes pending transactions until there is room. @param options.most How many at most. */
async function makeRoom(
  tables: TransactionTables,
  { total, limits, most }: { total: PendingTotal; limits: PendingLimits; most: number },
): Promise<string[]> {
  const changed = new Set<string>()
  for (let gone = 0; isOver(total, limits) && gone < most; ) {
    const page = await tables.firstPending(PAGE)
    if (page.length === 0) break
    for (const { txid, bytes } of page) {
      if (!isOver(total, limits)) break
      gone++
      for (const other of await tables.conflictsOf(await tables.spendsBy(txid))) changed.add(other)
      for (const child of await tables.childrenOf([txid])) changed.add(child)
      await tables.deleteTransaction(txid)
      await tables.deletePending([txid])
      changed.delete(txid)
      total.transactions--
      total.bytes -= bytes
      await yieldBetweenStatements()
    }
  }
  return [...changed]
}
