import { isDeepStrictEqual } from 'node:util'
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
 *
 * A submission that lost a conflict waits, with what only it needs, until it counts or is mined. What waits is pending, too, but
 * has a limit of its own, of which each client has a share: at the limit, the client that has the most loses its oldest.
 */

/** How many are read at once to make room. */
const PAGE = 50

/** How much may wait. */
const WAITING: PendingLimits = { maxTransactions: 1000, maxBytes: 100 * 1024 * 1024 }

interface Inserted {
  /** New transactions, or stored ones that are recorded again. */
  fresh: TransactionRecord[]
  /** The stored transactions that spend from these. */
  children: string[]
  /** Whether they are recorded again, and may be pending already. */
  again: boolean
  /** What these spend. */
  spends: SpendRecord[]
  /** Transactions that are to be kept for good, if they need not wait. */
  kept: ReadonlySet<string>
  /** Stored transactions with a new proof. */
  proven: TransactionRecord[]
  /** Stored transactions that changed rank, or that became active. */
  changed: string[]
  /** Set if the subject of the write lost, and waits. */
  lost?: { client?: string | undefined } | undefined
  /** Whether some are left to be judged and may have to be kept for good. */
  unjudged: boolean
  /** Kept transactions whose parents earlier writes left to be marked as kept. */
  left: string[]
}

interface PendingOptions {
  /** How many transactions to look at beside the fresh ones. */
  limit: number
  pending: PendingLimits
  waiting?: PendingLimits | undefined
}

interface Kept {
  /** The transactions that were deleted, and those to be decided again because of that. */
  deleted: ReadonlySet<string>
  changed: string[]
  /** The kept ones whose parents are left. */
  left: string[]
}

/** Whether new transactions are fewer and smaller than what may wait in all. */
export function mayWait(fresh: TransactionRecord[], { maxTransactions, maxBytes } = WAITING): boolean {
  const bytes = fresh.reduce((sum, { raw }) => sum + raw.length, 0)
  return fresh.length <= maxTransactions && bytes <= maxBytes
}

/** Updates which transactions are pending, and deletes some if there are too many. */
export async function keepPending(
  { transactions: tables }: GraphTables,
  inserted: Inserted,
  { limit, pending: limits, waiting: waitingLimits = WAITING }: PendingOptions,
): Promise<Kept> {
  const { fresh, children, again, spends, proven, lost, unjudged, left: earlier } = inserted
  const before = await tables.pendingTotal()
  const total = { ...before }
  const anyPending = before.transactions + before.waiting > 0
  for (const { txid } of proven) if (anyPending) await tables.setPendingProven(txid)
  const { kept, ended } = await keptOf(tables, inserted, { anyWaiting: before.waiting > 0 })
  if (ended.length > 0) {
    await tables.stopWaiting(ended.map(({ txid }) => txid))
    for (const { bytes } of ended) add(total, { bytes, waiting: true }, -1)
    for (const { bytes } of ended) add(total, { bytes, waiting: false })
  }
  const { needed, left } = await neededBy(
    tables,
    { fresh, children, spends, kept, left: earlier },
    { anyPending, limit },
  )
  if (anyPending) for (const each of await release(tables, needed)) add(total, each, -1)
  const pending = fresh.filter(({ txid }) => !needed.has(txid))
  if (pending.length > 0) {
    const statuses = await tables.statuses(pending.map(({ txid }) => txid))
    const order = new Map(statuses.map(({ txid, insertionOrder }) => [txid, insertionOrder]))
    const waiting = lost !== undefined
    const rows = pending.map(({ txid, raw, proof }) =>
      pendingRow({
        txid,
        proven: proof !== undefined,
        insertionOrder: order.get(txid) ?? 0,
        bytes: raw.length,
        waiting,
        client: lost?.client,
      }),
    )
    const listed = again ? await tables.pendingAmong(pending.map(({ txid }) => txid)) : []
    const counted = new Set(listed.map(({ txid }) => txid))
    await tables.insertNew('graph_pending', rows)
    for (const { txid, raw } of pending) if (!counted.has(txid)) add(total, { bytes: raw.length, waiting })
  }
  const room: Room = { deleted: new Set(), changed: new Set() }
  if (lost !== undefined && pending.length > 0)
    await makeRoomToWait(tables, room, {
      ...{ total, limits: waitingLimits },
      fresh: fresh.map(({ txid }) => txid),
    })
  // Delete nothing before it is known what must be kept; later writes then delete the excess.
  const isOpen = left.length > 0 || unjudged || (isOver(total, limits) && (await isAnyLeft(tables)))
  if (!isOpen) await makeRoom(tables, room, { total, limits, most: fresh.length + limit })
  if (!isDeepStrictEqual(total, before)) await tables.setPendingTotal(total)
  return { deleted: room.deleted, changed: [...room.changed], left }
}

/** Keeps those for good that waited and count by now, or are mined. Returns the ones whose parents are left. */
export async function endWaiting(
  tables: GraphTables,
  changed: string[],
  options: PendingOptions,
): Promise<string[]> {
  if (changed.length === 0) return []
  const nothing = { fresh: [], children: [], again: false, spends: [], kept: new Set<string>(), proven: [] }
  // Deletes nothing: later writes do that.
  const { left } = await keepPending(tables, { ...nothing, changed, unjudged: true, left: [] }, options)
  return left
}

function add(
  total: PendingTotal,
  { bytes, waiting }: Pick<PendingRecord, 'bytes' | 'waiting'>,
  sign = 1,
): void {
  if (waiting) {
    total.waiting += sign
    total.waitingBytes += sign * bytes
  } else {
    total.transactions += sign
    total.bytes += sign * bytes
  }
}

/**
 * Those to be kept for good: not what lost and still waits, but what does no longer, if topics hold an output of it, or of what it
 * spends.
 *
 * @returns `ended`: those that no longer wait, and that nothing admitted depends on.
 */
async function keptOf(
  tables: TransactionTables,
  { fresh, kept, changed, lost }: Inserted,
  { anyWaiting }: { anyWaiting: boolean },
): Promise<{ kept: ReadonlySet<string>; ended: PendingRecord[] }> {
  if (lost === undefined && !anyWaiting) return { kept, ended: [] }
  const keeping = new Set(kept)
  const waiting = anyWaiting
    ? (await tables.pendingAmong([...new Set([...kept, ...changed])])).filter((each) => each.waiting)
    : []
  const newly = lost === undefined ? [] : fresh.map(({ txid }) => txid).filter((txid) => kept.has(txid))
  const statuses = await tables.statuses([...waiting.map(({ txid }) => txid), ...newly])
  const counting = new Set<string>()
  for (const { txid, isInactive, mined } of statuses)
    if (isInactive && mined === undefined) keeping.delete(txid)
    else counting.add(txid)
  const ended: PendingRecord[] = []
  for (const each of waiting) {
    const { txid } = each
    if (!counting.has(txid) || keeping.has(txid)) continue
    const isHeld = (await tables.admissionsOf([txid])).length > 0
    if (isHeld || (await tables.spendingAdmitted([txid])).length > 0) keeping.add(txid)
    else ended.push(each)
  }
  return { kept: keeping, ended }
}

/** Those to be kept for good, with those ancestors that are new or pending. */
async function neededBy(
  tables: TransactionTables,
  {
    fresh,
    children: stored,
    spends,
    kept,
    left,
  }: Pick<Inserted, 'fresh' | 'children' | 'spends' | 'kept' | 'left'>,
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

function isOver(
  total: Pick<PendingTotal, 'transactions' | 'bytes'>,
  { maxTransactions, maxBytes }: PendingLimits,
): boolean {
  return total.transactions > maxTransactions || total.bytes > maxBytes
}

/** What was deleted to make room, and what is to be decided again because of that. */
interface Room {
  deleted: Set<string>
  changed: Set<string>
}

/** Deletes pending transactions until there is room. @param options.most How many at most. */
async function makeRoom(
  tables: TransactionTables,
  room: Room,
  { total, limits, most }: { total: PendingTotal; limits: PendingLimits; most: number },
): Promise<void> {
  for (let gone = 0; isOver(total, limits) && gone < most; ) {
    const page = await tables.firstPending(PAGE)
    if (page.length === 0) break
    for (const each of page) {
      if (!isOver(total, limits)) break
      gone++
      await deletePending(tables, room, { each, total })
    }
  }
}

/** Deletes what waits until there is room: of the client that has the most, the oldest with all that is built on it. */
async function makeRoomToWait(
  tables: TransactionTables,
  room: Room,
  { total, limits, fresh }: { total: PendingTotal; limits: PendingLimits; fresh: readonly string[] },
): Promise<void> {
  const sizeOf = () => ({ transactions: total.waiting, bytes: total.waitingBytes })
  if (!isOver(sizeOf(), limits)) return
  const waiting = new Map((await tables.waiting()).map((each) => [each.txid, each]))
  // What is new stays, and so does what it is built on: without that, it would count.
  const staying = new Set(fresh)
  for (const txid of staying)
    for (const { outpoint } of await tables.spendsBy(txid))
      if (waiting.has(outpoint.txid)) staying.add(outpoint.txid)
  while (isOver(sizeOf(), limits)) {
    const isByCount = total.waiting > limits.maxTransactions
    const shares = new Map<string | undefined, number>()
    for (const { client, bytes } of waiting.values())
      shares.set(client, (shares.get(client) ?? 0) + (isByCount ? 1 : bytes))
    const shareOf = ({ client }: PendingRecord): number => shares.get(client) ?? 0
    const [oldest] = [...waiting.values()]
      .filter(({ txid }) => !staying.has(txid))
      .sort((a, b) => shareOf(b) - shareOf(a) || a.insertionOrder - b.insertionOrder)
    if (oldest === undefined) return
    const line = new Set([oldest.txid])
    for (const txid of line) {
      const each = waiting.get(txid)
      if (each === undefined) continue
      for (const child of await tables.childrenOf([txid])) line.add(child)
      waiting.delete(txid)
      await tables.deleteInactiveFacts(txid)
      await deletePending(tables, room, { each, total })
    }
  }
}

async function deletePending(
  tables: TransactionTables,
  { deleted, changed }: Room,
  { each, total }: { each: PendingRecord; total: PendingTotal },
): Promise<void> {
  const { txid } = each
  for (const other of await tables.conflictsOf(await tables.spendsBy(txid))) changed.add(other)
  for (const child of await tables.childrenOf([txid])) changed.add(child)
  await tables.deleteTransaction(txid)
  await tables.deletePending([txid])
  deleted.add(txid)
  changed.delete(txid)
  add(total, each, -1)
  await yieldBetweenStatements()
}
