import type { AdmissionOptions } from '../../graph/admission-rules.js'
import { parentsFirst } from '../../graph/ancestry.js'
import { type Decision, decide, keepRanks, type Standing } from '../../graph/conflict-resolution.js'
import { LostConflictError } from '../../graph/errors.js'
import type { RecordOptions } from '../../graph/graph-store.js'
import { UnstableReadError } from '../../graph/optimistic-read.js'
import {
  type Block,
  type GraphRecords,
  mergeRecords,
  type NodeRecord,
  type SpendRecord,
  type TransactionRecord,
} from '../../graph/records.js'
import { hashColumn, parts } from '../rows/columns.js'
import { nodeRow, proofColumns, spendRow } from '../rows/record-rows.js'
import { type Backlog, emptyBacklog, reevaluationsOf } from './backlog.js'
import { insertChunks } from './blob-chunks.js'
import { writeInactive } from './deactivate.js'
import { deriveAdmissions } from './derive-admissions.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'
import {
  isSpentTwice,
  minedOf,
  type NewRecords,
  newRecordsOf,
  nextInsertion,
  parentsIn,
} from './new-records.js'
import { keepPending } from './pending.js'
import { rest } from './rest.js'
import { withValues, writeSpentValues } from './spent-values.js'

export interface WriteOptions extends RecordOptions {
  /** Where the store derives admissions, by what. */
  admission?: AdmissionOptions | undefined
  /** What earlier writes have left to be done. */
  earlier?: Backlog
}

const NOTHING: Decision = { deactivated: [], restored: [] }

/** What a write of transactions has come to. */
export interface Written {
  decision: Decision
  /** What was told, with what follows from it. */
  records: GraphRecords
  /** Raw transactions that are new here, or are told again. */
  arrived: ReadonlyMap<string, Uint8Array>
  /** What is left for the writes after this one. */
  left: Pick<Backlog, 'judge' | 'keep' | 'decide'>
}

/**
 * Writes transactions that are told, with their proofs, what they spend and which nodes they leave, derives what topics admit
 * by that where the store does, and decides what counts now.
 *
 * @throws LostConflictError where the subject would not count, and is not mined; UnstableReadError where it is not decided yet
 * whether what it conflicts with counts.
 */
export async function writeTransactions(
  graph: GraphTables,
  told: GraphRecords,
  { subject, again = false, onRefusal = () => {}, admission, earlier = emptyBacklog() }: WriteOptions = {},
): Promise<Written> {
  const { transactions: tables } = graph
  const limit = reevaluationsOf(admission)
  const left: Written['left'] = { judge: [], keep: [], decide: [] }
  const { transactions, spends } = told
  const raw = new Map(transactions.map((transaction) => [transaction.txid, transaction.raw]))
  const news = await newRecordsOf(tables, { transactions, spends, again })
  news.spends = await withValues(graph, news.spends, raw)
  const { own, children } = await writeSorted(tables, news)
  await writeSpentValues(graph, news.fresh)
  // The rank of what spends them does not change by what it spends.
  const ranked = own.length === 0 ? [] : await keepRanks(own, tables.rankedView(), rest)
  const arrived = again ? raw : new Map(news.fresh.map(({ txid, raw }) => [txid, raw]))
  let records = told
  // What is indexed again is decided again, too.
  const changed = [...own, ...children, ...(again ? raw.keys() : [])]
  if (admission !== undefined) {
    const fresh = [...arrived.keys()]
    const arriving = { transactions: raw, fresh, subject, again, left: earlier.judge, limit }
    const derived = await deriveAdmissions(graph, admission.rules(onRefusal), arriving)
    records = mergeRecords([told, derived.records])
    left.judge = derived.left
    const { proven, spends } = news
    const kept = await keepPending(
      graph,
      {
        ...{ fresh: again ? transactions : news.fresh, spends, proven, kept: derived.kept },
        ...{ unjudged: derived.left.length > 0, left: earlier.keep },
      },
      { limit, pending: admission.pending },
    )
    left.keep = kept.left
    for (const txid of kept.changed) changed.push(txid)
  }
  const { nodes, names, outputs } = records
  // Where admissions are derived, whatever is held was looked at when it came; that it left a node may be news.
  const said = admission === undefined ? [...nodes, ...names, ...outputs] : nodes
  const lookedAt = new Set(said.map(({ outpoint }) => outpoint.txid))
  changed.push(
    ...(await writeNodes(tables, nodes, news)),
    ...(await spendersOfNodes(tables, lookedAt, news.fresh)),
  )
  const isNew = news.fresh.some(({ txid }) => txid === subject)
  let decision = NOTHING
  if (changed.length > 0 || earlier.decide.length > 0) {
    const fresh = new Set(news.fresh.map(({ txid }) => txid))
    const decided = await decideAnew(tables, {
      ...{ txids: changed, ranked, lookedAt, fresh },
      ...{ earlier: earlier.decide, limit },
    })
    decision = decided
    left.decide = decided.left
  }
  if (subject !== undefined && (changed.length > 0 || !isNew))
    await requireCounting(tables, subject, left.decide)
  return { decision, records, arrived, left }
}

/** Writes nodes. Returns the transactions that spend them, and may have rivals since. */
async function writeNodes(
  tables: TransactionTables,
  nodes: NodeRecord[],
  { fresh }: NewRecords,
): Promise<string[]> {
  if (nodes.length === 0) return []
  const isFresh = new Set(fresh.map(({ txid }) => txid))
  const others = nodes.map(({ outpoint }) => outpoint.txid).filter((txid) => !isFresh.has(txid))
  // Of what is new here, nothing is silent yet.
  const silent = await tables.inactiveAmong(others)
  const isInactive = ({ outpoint }: NodeRecord): boolean => silent.has(outpoint.txid)
  await tables.insertNew('graph_nodes', nodes.filter((node) => !isInactive(node)).map(nodeRow))
  await writeInactive(tables, { outputs: [], names: [], nodes: nodes.filter(isInactive) })
  // And what spends it, was looked up with it.
  return await tables.childrenOf(others)
}

/** Those that were known before they were looked at, and what spends the same: whether they are mints, is known by now. */
async function spendersOfNodes(
  tables: TransactionTables,
  lookedAt: ReadonlySet<string>,
  fresh: TransactionRecord[],
): Promise<string[]> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const known = await tables.statuses([...lookedAt].filter((txid) => !own.has(txid)))
  const others = known.map(({ txid }) => txid)
  const spends: SpendRecord[] = []
  for (const txid of others) spends.push(...(await tables.spendsBy(txid)))
  return [...others, ...(await tables.conflictsOf(spends))]
}

/** Returns the transactions that are to be decided on, with what spends them; none where nothing can be in their way. */
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
  const known = new Map((await tables.statuses(txids)).map((standing) => [standing.txid, standing]))
  const mined = await minedOf(fresh, parents, (wanted) => tables.statuses(wanted))
  const children = await tables.childrenOf(txids)
  const isPlain =
    proven.length === 0 &&
    known.size === 0 &&
    mined !== undefined &&
    children.length === 0 &&
    (await tables.conflictsOf(spends)).length === 0 &&
    !isSpentTwice(spends)
  await insertTransactions(tables, {
    fresh: byTxid,
    txids: txids.filter((txid) => !known.has(txid)),
    ...(isPlain && { mined }),
  })
  await insertSpends(tables, spends, known)
  // A proof that comes later is the newer word of the chain.
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

/**
 * Decides what counts after something of these transactions has changed.
 *
 * @param changed.ranked Those whose rank was changed by that.
 * @param changed.fresh Those that are new.
 * @param changed.earlier Those that earlier writes have left to be decided on.
 * @returns That, and those that are left to the writes after this one.
 */
async function decideAnew(
  tables: TransactionTables,
  changed: {
    txids: string[]
    ranked: string[]
    lookedAt?: ReadonlySet<string>
    fresh?: ReadonlySet<string>
    earlier?: string[]
    limit: number
  },
): Promise<Decision & { left: string[] }> {
  const { txids, ranked, lookedAt, fresh = new Set(), earlier = [], limit } = changed
  const open = [...(await tables.questionable(txids)), ...earlier]
  const decided = await decide({
    ...{ txids: open, ranked, view: tables.rankedView(lookedAt), rest, fresh },
    limit,
  })
  await tables.setInactive(decided.deactivated, true)
  await tables.setInactive(decided.restored, false)
  return decided
}

/**
 * Takes back the proofs that lead to a block, and decides what counts without them.
 *
 * @returns That, and how many transactions had such a proof.
 */
export async function takeProofs(
  tables: TransactionTables,
  block: Block,
): Promise<{ decision: Decision & { left: string[] }; count: number }> {
  const txids = await tables.takeProofs(block)
  if (txids.length === 0) return { decision: { ...NOTHING, left: [] }, count: 0 }
  const ranked = await keepRanks(txids, tables.rankedView(), rest)
  return {
    decision: await decideAnew(tables, { txids, ranked, limit: reevaluationsOf() }),
    count: txids.length,
  }
}

/** @param options.txids Parents first. Where ranks are still to be kept, `mined` is left open. */
async function insertTransactions(
  tables: TransactionTables,
  options: { fresh: Map<string, TransactionRecord>; txids: string[]; mined?: Map<string, number> },
): Promise<void> {
  const { fresh, txids, mined } = options
  if (txids.length === 0) return
  const arrival = nextInsertion(await tables.lastInsertion())
  await tables.insertNew(
    'graph_transactions',
    txids.map((txid, at) => ({
      txid: hashColumn(txid),
      ...proofColumns(fresh.get(txid)?.proof),
      mined: mined?.get(txid) ?? null,
      arrival: arrival + at,
      silent: false,
    })),
  )
}

async function insertSpends(
  tables: TransactionTables,
  spends: SpendRecord[],
  known: Map<string, Standing>,
): Promise<void> {
  const isInactive = ({ spender }: SpendRecord): boolean => known.get(spender)?.silent === true
  // Rows are made for some at a time: a transaction spends as many outpoints as fit into it.
  for (const part of parts(spends, SPENDS_AT_ONCE)) {
    await tables.insertNew('graph_spends', part.filter((spend) => !isInactive(spend)).map(spendRow))
    await tables.insertNew('graph_silent_spends', part.filter(isInactive).map(spendRow))
  }
}

const SPENDS_AT_ONCE = 1000

/** @param left Those that are not decided on yet, because of the subject and what comes with it. */
async function requireCounting(tables: TransactionTables, subject: string, left: string[]): Promise<void> {
  const [standing] = await tables.statuses([subject])
  if (standing === undefined || standing.mined !== undefined) return
  if (!standing.silent && left.length === 0) return
  // What it loses to may be about to count no more, or what it is built on: that is decided first.
  if (left.length > 0 || (await tables.hasBacklog('decide')))
    throw new UnstableReadError('conflicts are being decided: submit it again in a moment')
  const winner = await tables.winnerOver(subject)
  if (winner !== undefined) throw new LostConflictError(subject, winner)
}
