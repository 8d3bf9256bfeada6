import type { PendingLimits } from '../../graph/admission-rules.js'
import type { SpendRecord, TransactionRecord } from '../../graph/records.js'
import { groupBy } from '../rows/columns.js'
import { type PendingRecord, pendingRow } from '../rows/record-rows.js'
import type { GraphTables, PendingTotal, TransactionTables } from './graph-tables.js'
import { rest } from './rest.js'

/**
 * What is admitted is kept for good, and so is what spends it, and every known ancestor of both. All else is pending: it may
 * be what others wait for, or wait itself, and is kept within bounds. Where these are reached, the transactions go first that are not proven,
 * and of those the ones that have waited longest.
 */

/** How many are looked at at once to make room. */
const A_PAGE = 50

export interface Arrived {
  /** New transactions. */
  fresh: TransactionRecord[]
  /** What these spend. */
  spends: SpendRecord[]
  /** Transactions that are to be kept for good. */
  kept: ReadonlySet<string>
  /** Of what was known before, the transactions that are proven since. */
  proven: TransactionRecord[]
  /** Whether some are left to be judged, that may have to be kept for good. */
  unjudged: boolean
  /** Of what is kept for good, the transactions whose parents earlier writes have left to be. */
  left: string[]
}

/**
 * Takes down which transactions are pending after new ones came, and makes room where there are too many.
 *
 * @param options.limit How many transactions are looked at beside the fresh ones.
 * @returns The transactions that are to be decided on anew, as others were forgotten; and those of what is kept for good
 * whose parents are left to be.
 */
export async function keepPending(
  { transactions: tables }: GraphTables,
  { fresh, spends, kept, proven, unjudged, left: earlier }: Arrived,
  { limit, pending: limits }: { limit: number; pending: PendingLimits },
): Promise<{ changed: string[]; left: string[] }> {
  const before = await tables.pendingTotal()
  const total = { ...before }
  for (const { txid } of proven) if (before.transactions > 0) await tables.setPendingProven(txid)
  const anyPending = before.transactions > 0
  const { needed, left } = await neededBy(
    tables,
    { fresh, spends, kept, left: earlier },
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
    const insertionOrder = new Map(statuses.map(({ txid, arrival }) => [txid, arrival]))
    const rows = pending.map(({ txid, raw, proof }) =>
      pendingRow({
        txid,
        proven: proof !== undefined,
        arrival: insertionOrder.get(txid) ?? 0,
        bytes: raw.length,
      }),
    )
    await tables.insertNew('graph_pending', rows)
    total.transactions += pending.length
    for (const { raw } of pending) total.bytes += raw.length
  }
  // What is to be kept has to be known before anything is forgotten; and what is too much then, the next writes forget.
  const isOpen = left.length > 0 || unjudged || (isOver(total, limits) && (await isAnyLeft(tables)))
  const changed = isOpen ? [] : await makeRoom(tables, { total, limits, most: fresh.length + limit })
  if (total.transactions !== before.transactions || total.bytes !== before.bytes)
    await tables.setPendingTotal(total)
  return { changed, left }
}

/** Those that are to be kept for good, with their ancestors; of these, the ones that are new or pending. */
async function neededBy(
  tables: TransactionTables,
  { fresh, spends, kept, left }: Omit<Arrived, 'proven' | 'unjudged'>,
  { anyPending, limit }: { anyPending: boolean; limit: number },
): Promise<{ needed: Set<string>; left: string[] }> {
  const needed = new Set(kept)
  const isFresh = new Set(fresh.map(({ txid }) => txid))
  const spentBy = groupBy(spends, ({ spender }) => spender)
  const anyChildren = (await tables.childrenOf([...isFresh])).some((child) => !isFresh.has(child))
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
    // What is known and not pending is kept already, and so are its ancestors.
    const pending = anyPending ? await tables.pendingAmong(known) : []
    for (const parent of [
      ...[...parents].filter((each) => isFresh.has(each)),
      ...pending.map((each) => each.txid),
    ]) {
      needed.add(parent)
      waiting.push(parent)
    }
    await rest()
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

/** Forgets transactions until there is room. @param options.most How many at the most. */
async function makeRoom(
  tables: TransactionTables,
  { total, limits, most }: { total: PendingTotal; limits: PendingLimits; most: number },
): Promise<string[]> {
  const changed = new Set<string>()
  for (let gone = 0; isOver(total, limits) && gone < most; ) {
    const page = await tables.firstPending(A_PAGE)
    if (page.length === 0) break
    for (const { txid, bytes } of page) {
      if (!isOver(total, limits)) break
      gone++
      for (const rival of await tables.conflictsOf(await tables.spendsBy(txid))) changed.add(rival)
      for (const child of await tables.childrenOf([txid])) changed.add(child)
      await tables.deleteTransaction(txid)
      await tables.deletePending([txid])
      changed.delete(txid)
      total.transactions--
      total.bytes -= bytes
      await rest()
    }
  }
  return [...changed]
}
