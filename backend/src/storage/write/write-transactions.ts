import type { AdmissionOptions } from '../../graph/admission-rules.js'
import { parentsFirst } from '../../graph/ancestry.js'
import { type TransactionStatus, updateRanks } from '../../graph/conflict-resolution.js'
import type { LostConflictError } from '../../graph/errors.js'
import type { RecordOptions } from '../../graph/graph-store.js'
import {
  blockText,
  type GraphRecords,
  mergeRecords,
  type NodeRecord,
  type SpendRecord,
  type TransactionRecord,
} from '../../graph/records.js'
import { formatOutpoint } from '../../protocol/outpoint.js'
import { hashColumn, parts } from '../rows/columns.js'
import { nodeRow, proofColumns, spendRow } from '../rows/record-rows.js'
import { type BacklogItems, emptyBacklog, reevaluationsOf } from './backlog.js'
import { insertChunks } from './blob-chunks.js'
import {
  conflictsOverNodes,
  lossesOf,
  mergeDecisions,
  NOTHING,
  type Resolution,
  resolveConflicts,
  writeInactive,
} from './conflicts.js'
import { deriveAdmissions } from './derive-admissions.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'
import { queueTransactions } from './index-ordinals.js'
import { withValues, writeSpentValues } from './link-lineages.js'
import { keepPending, mayWait } from './pending.js'

export interface WriteOptions extends RecordOptions {
  /** The rules, if the store derives admissions. */
  admission?: AdmissionOptions | undefined
  /** Work that earlier writes left. */
  earlier?: BacklogItems
}

interface WrittenTransactions {
  decision: Resolution
  /** Those whose rank changed. */
  ranked: string[]
  /** The records passed in, and those derived from them. */
  records: GraphRecords
  /** The raw transactions that are new, or all if they are recorded again. */
  inserted: ReadonlyMap<string, Uint8Array>
  /** The items left for later writes. */
  left: Pick<BacklogItems, 'judge' | 'keep' | 'decide'>
  /** The subjects that lost, and wait. */
  lost: LostConflictError[]
}

/**
 * Writes transactions with their proofs, spends and nodes, derives admissions if the store does that, and resolves conflicts.
 *
 * @throws LostConflictError if a subject would be inactive and is not mined, unless it may wait; UnstableReadError if a conflict
 * of one is not decided yet.
 */
export async function writeTransactions(
  graph: GraphTables,
  newRecords: GraphRecords,
  {
    subjects = [],
    keepLost,
    again = false,
    onRefusal = () => {},
    admission,
    earlier = emptyBacklog(),
  }: WriteOptions = {},
): Promise<WrittenTransactions> {
  const { transactions: tables } = graph
  const limit = reevaluationsOf(admission)
  const left: WrittenTransactions['left'] = { judge: [], keep: [], decide: [] }
  const { transactions, spends } = newRecords
  const raw = new Map(transactions.map((transaction) => [transaction.txid, transaction.raw]))
  const found = await newRecordsOf(tables, { transactions, spends, again })
  found.spends = await withValues(graph, found.spends, raw)
  const { own, children } = await writeSorted(tables, found)
  if (children.length > 0) await writeSpentValues(graph, found.fresh)
  // The ranks of their children do not depend on them.
  const ranked = own.length === 0 ? [] : await updateRanks(own, tables.rankedView())
  const inserted = again ? raw : new Map(found.fresh.map(({ txid, raw }) => [txid, raw]))
  let records = newRecords
  // Transactions that are recorded again are decided again, too.
  const changed = [...own, ...children, ...(again ? raw.keys() : [])]
  let kept: ReadonlySet<string> = new Set()
  // Those of transactions that are recorded again are not all among them.
  const stored = again ? await tables.childrenOf([...inserted.keys()]) : children
  if (admission !== undefined) {
    const fresh = [...inserted.keys()]
    const judged = { transactions: raw, fresh, subjects, again, children: stored, left: earlier.judge, limit }
    const derived = await deriveAdmissions(graph, admission.rules(onRefusal), judged)
    records = mergeRecords([newRecords, derived.records])
    kept = derived.kept
    left.judge = derived.left
    await queueTransactions(graph, derived)
  }
  const { nodes, names, outputs } = records
  // A store that derives admissions judged all stored transactions when they were inserted; they may have new nodes.
  const facts = admission === undefined ? [...nodes, ...names, ...outputs] : nodes
  const judged = new Set(facts.map(({ outpoint }) => outpoint.txid))
  changed.push(
    ...(await writeNodes(tables, nodes, found)),
    ...(await conflictsOverNodes(tables, judged, found.fresh)),
  )
  const fresh = new Set(found.fresh.map(({ txid }) => txid))
  let decision =
    changed.length > 0 || earlier.decide.length > 0
      ? await resolveConflicts(tables, {
          ...{ txids: changed, ranked, judged, fresh },
          ...{ earlier: earlier.decide, limit },
        })
      : NOTHING
  const questioned = changed.length > 0 ? subjects : subjects.filter((subject) => !fresh.has(subject))
  let lost = await lossesOf(tables, questioned, decision.left)
  const mayKeep =
    keepLost !== undefined &&
    admission !== undefined &&
    mayWait(found.fresh, admission.waiting) &&
    // No block can hold what spends a coin twice with all that it is built on.
    !isSpentTwice(spends)
  const refused = lost.find(({ reason }) => !mayKeep || reason.tier === 'proven')
  if (refused !== undefined) throw refused
  if (admission !== undefined) {
    const { proven, spends } = found
    const pending = await keepPending(
      graph,
      {
        ...{ fresh: again ? transactions : found.fresh, again, spends, proven, kept, children: stored },
        ...{ changed: [...ranked, ...decision.restored], lost: lost.length > 0 ? keepLost : undefined },
        ...{ unjudged: left.judge.length > 0, left: earlier.keep },
      },
      { limit, ...admission },
    )
    left.keep = pending.left
    if (pending.changed.length > 0) {
      const further = { txids: pending.changed, ranked: [], judged, fresh, limit }
      decision = mergeDecisions(decision, await resolveConflicts(tables, further), pending.deleted)
      lost = await lossesOf(tables, questioned, decision.left)
    }
  }
  left.decide = decision.left
  return { decision, ranked, records, inserted, left, lost }
}

/** Writes nodes. Returns the transactions that spend them, and so may conflict now. */
async function writeNodes(
  tables: TransactionTables,
  nodes: NodeRecord[],
  { fresh }: NewRecords,
): Promise<string[]> {
  if (nodes.length === 0) return []
  const isFresh = new Set(fresh.map(({ txid }) => txid))
  const others = nodes.map(({ outpoint }) => outpoint.txid).filter((txid) => !isFresh.has(txid))
  // New transactions are not inactive yet.
  const inactive = await tables.inactiveAmong(others)
  const isInactive = ({ outpoint }: NodeRecord): boolean => inactive.has(outpoint.txid)
  await tables.insertNew('graph_nodes', nodes.filter((node) => !isInactive(node)).map(nodeRow))
  await writeInactive(tables, { outputs: [], names: [], nodes: nodes.filter(isInactive) })
  // The children of new transactions were looked up with them.
  return await tables.childrenOf(others)
}

/** Returns the transactions to decide on, with their children; none if nothing can conflict. */
async function writeSorted(
  tables: TransactionTables,
  { fresh, spends, proven }: NewRecords,
): Promise<{ own: string[]; children: string[] }> {
  if (fresh.length === 0 && spends.length === 0 && proven.length === 0) return { own: [], children: [] }
  const byTxid = new Map(fresh.map((transaction) => [transaction.txid, transaction]))
  const parents = parentsIn(spends)
  const txids = parentsFirst(
    new Map([...byTxid.keys(), ...parents.keys()].map((txid) => [txid, txid])),
    (txid) => parents.get(txid) ?? [],
  )
  const known = new Map((await tables.statuses(txids)).map((status) => [status.txid, status]))
  const mined = await minedHeights(fresh, parents, (wanted) => tables.statuses(wanted))
  const children = await tables.childrenOf(txids)
  const isPlain =
    proven.length === 0 &&
    known.size === 0 &&
    mined !== undefined &&
    children.length === 0 &&
    (await tables.sightingsOf(txids)).size === 0 &&
    (await tables.conflictsOf(spends)).length === 0 &&
    !isSpentTwice(spends)
  await insertTransactions(tables, {
    fresh: byTxid,
    txids: txids.filter((txid) => !known.has(txid)),
    ...(isPlain && { mined }),
  })
  await insertSpends(tables, spends, known)
  tables.cacheSpends(
    [...byTxid.keys()].filter((txid) => !known.has(txid)),
    spends,
  )
  // A later proof replaces an earlier one.
  for (const { txid, proof } of [...fresh.filter(({ txid }) => known.has(txid)), ...proven])
    if (proof !== undefined) await tables.setProof(txid, proof)
  await insertChunks(
    tables,
    fresh.map(({ txid, raw }) => ({ owner: hashColumn(txid), bytes: raw })),
  )
  return isPlain
    ? { own: [], children: [] }
    : { own: [...txids, ...proven.map(({ txid }) => txid)], children }
}

/** @param options.txids Parents first. @param options.mined Undefined if ranks are updated afterwards. */
async function insertTransactions(
  tables: TransactionTables,
  options: { fresh: Map<string, TransactionRecord>; txids: string[]; mined?: Map<string, number> },
): Promise<void> {
  const { fresh, txids, mined } = options
  if (txids.length === 0) return
  const first = nextInsertionOrder(await tables.lastInsertionOrder())
  await tables.insertNew(
    'graph_transactions',
    txids.map((txid, at) => ({
      txid: hashColumn(txid),
      ...proofColumns(fresh.get(txid)?.proof),
      mined: mined?.get(txid) ?? null,
      seen: mined?.has(txid) ?? false,
      rejected: false,
      arrival: first + at,
      silent: false,
    })),
  )
  tables.listings.count({ transactions: txids.length })
}

async function insertSpends(
  tables: TransactionTables,
  spends: SpendRecord[],
  known: Map<string, TransactionStatus>,
): Promise<void> {
  const isInactive = ({ spender }: SpendRecord): boolean => known.get(spender)?.isInactive === true
  // In parts: a transaction may spend any number of outpoints.
  for (const part of parts(spends, SPENDS_AT_ONCE)) {
    await tables.insertNew('graph_spends', part.filter((spend) => !isInactive(spend)).map(spendRow))
    await tables.insertNew('graph_silent_spends', part.filter(isInactive).map(spendRow))
  }
}

const SPENDS_AT_ONCE = 1000

/** What is new among the records passed to a write. */
interface NewRecords {
  /** Transactions whose bytes are not stored. */
  fresh: TransactionRecord[]
  /** Their spends, and spends that come without the bytes of the spender. */
  spends: SpendRecord[]
  /** Stored transactions that come with a proof that is not stored. */
  proven: TransactionRecord[]
}

/** @param records.again Whether the spends of stored transactions count as new. */
async function newRecordsOf(
  tables: TransactionTables,
  records: { transactions: TransactionRecord[]; spends: SpendRecord[]; again: boolean },
): Promise<NewRecords> {
  const { transactions, spends, again } = records
  const byTxid = new Map<string, TransactionRecord>()
  for (const transaction of transactions) {
    const { txid, proof } = transaction
    if (proof !== undefined || !byTxid.has(txid)) byTxid.set(txid, transaction)
  }
  const held = await tables.held([...byTxid.keys()])
  const all = [...byTxid.values()]
  const proofs = all.filter(({ txid, proof }) => proof !== undefined && held.has(txid))
  const stored = await tables.blocks(proofs.map(({ txid }) => txid))
  return {
    fresh: all.filter(({ txid }) => !held.has(txid)),
    spends: again ? spends : spends.filter(({ spender }) => !held.has(spender)),
    proven: proofs.filter(({ txid, proof }) => proof && stored.get(txid) !== blockText(proof)),
  }
}

/** The parents of each spender, by txid. */
function parentsIn(spends: SpendRecord[]): Map<string, string[]> {
  const parents = new Map<string, string[]>()
  for (const { outpoint, spender } of spends) {
    const known = parents.get(spender)
    if (known === undefined) parents.set(spender, [outpoint.txid])
    else known.push(outpoint.txid)
  }
  return parents
}

/**
 * The heights at which new transactions are mined, by their own proofs and those of new descendants. Undefined if one of
 * them spends from a stored transaction that is inactive, or not known to be mined at that height.
 */
async function minedHeights(
  fresh: TransactionRecord[],
  parents: Map<string, string[]>,
  statusesOf: (txids: string[]) => Promise<TransactionStatus[]>,
): Promise<Map<string, number> | undefined> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const others = new Set<string>()
  for (const txids of parents.values()) for (const txid of txids) if (!own.has(txid)) others.add(txid)
  const known = new Map<string, TransactionStatus>()
  for (const status of await statusesOf([...others])) {
    if (status.isInactive) return undefined
    known.set(status.txid, status)
  }
  const mined = new Map<string, number>()
  const waiting = fresh.flatMap(({ txid, proof }) => (proof ? [{ txid, height: proof.height }] : []))
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { txid, height } = next
    if (height >= (mined.get(txid) ?? known.get(txid)?.mined ?? Number.POSITIVE_INFINITY)) continue
    if (known.has(txid)) return undefined
    if (!own.has(txid)) continue
    mined.set(txid, height)
    for (const parent of new Set(parents.get(txid)))
      if (own.has(parent) || known.has(parent)) waiting.push({ txid: parent, height })
  }
  return mined
}

/** Whether two of the spends are a double spend. */
function isSpentTwice(spends: SpendRecord[]): boolean {
  const spender = new Map<string, string>()
  return spends.some(({ outpoint, spender: txid }) => {
    const key = formatOutpoint(outpoint)
    const other = spender.get(key)
    spender.set(key, txid)
    return other !== undefined && other !== txid
  })
}

/**
 * The gap in insertion order between two writes: a parent that comes later than its child is placed before that child, and
 * after everything of earlier writes.
 */
const WRITE_GAP = 2 ** 20

/** The first place of a new write. @param last The last place that is taken. */
function nextInsertionOrder(last: number): number {
  return (Math.floor(last / WRITE_GAP) + 1) * WRITE_GAP
}
