import type { PendingLimits } from '../graph/admission-rules.js'
import type { SpendRecord, TransactionRecord } from '../graph/records.js'
import { groupBy } from './columns.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'
import { rest } from './rest.js'
import { type PendingRecord, pendingRow } from './rows.js'

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
}

/**
 * Takes down which transactions are pending after new ones came, and makes room where there are too many.
 *
 * @returns The transactions that are to be decided on anew, as others were forgotten.
 */
export async function keepPending(
  { transactions: tables }: GraphTables,
  { fresh, spends, kept, proven }: Arrived,
  limits: PendingLimits,
): Promise<string[]> {
  const before = await tables.pendingTotal()
  const total = { ...before }
  for (const { txid } of proven) if (before.transactions > 0) await tables.setPendingProven(txid)
  const needed = await neededBy(tables, { fresh, spends, kept }, before.transactions > 0)
  if (before.transactions > 0) {
    const released = await release(tables, needed)
    total.transactions -= released.length
    for (const { bytes } of released) total.bytes -= bytes
  }
  const pending = fresh.filter(({ txid }) => !needed.has(txid))
  if (pending.length > 0) {
    const standings = await tables.standings(pending.map(({ txid }) => txid))
    const arrivals = new Map(standings.map(({ txid, arrival }) => [txid, arrival]))
    const rows = pending.map(({ txid, raw, proof }) =>
      pendingRow({
        txid,
        proven: proof !== undefined,
        arrival: arrivals.get(txid) ?? 0,
        bytes: raw.length,
      }),
    )
    await tables.insertNew('graph_pending', rows)
    total.transactions += pending.length
    for (const { raw } of pending) total.bytes += raw.length
  }
  const changed = await makeRoom(tables, total, limits)
  if (total.transactions !== before.transactions || total.bytes !== before.bytes)
    await tables.setPendingTotal(total)
  return changed
}

/** Those that are to be kept for good, with their ancestors; of these, the ones that are new or pending. */
async function neededBy(
  tables: TransactionTables,
  { fresh, spends, kept }: Omit<Arrived, 'proven'>,
  anyPending: boolean,
): Promise<Set<string>> {
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
  const waiting = [...needed]
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
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
  return needed
}

async function release(tables: TransactionTables, needed: ReadonlySet<string>): Promise<PendingRecord[]> {
  const released = await tables.pendingAmong([...needed])
  await tables.deletePending(released.map(({ txid }) => txid))
  return released
}

async function makeRoom(
  tables: TransactionTables,
  total: { transactions: number; bytes: number },
  { maxTransactions, maxBytes }: PendingLimits,
): Promise<string[]> {
  const changed = new Set<string>()
  while (total.transactions > maxTransactions || total.bytes > maxBytes) {
    const page = await tables.firstPending(A_PAGE)
    if (page.length === 0) break
    for (const { txid, bytes } of page) {
      if (total.transactions <= maxTransactions && total.bytes <= maxBytes) break
      for (const rival of await tables.rivalsOf(await tables.spendsBy(txid))) changed.add(rival)
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
