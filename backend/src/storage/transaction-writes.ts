import { LostConflictError } from '../graph/conflict-error.js'
import type { RecordOptions } from '../graph/graph-store.js'
import { parentsFirst } from '../graph/parents-first.js'
import type { Block, GraphRecords, NodeRecord, SpendRecord, TransactionRecord } from '../graph/records.js'
import { type Decision, decide, keepRanks, type Standing } from '../graph/standing.js'
import { hashColumn } from './columns.js'
import type { TransactionTables } from './graph-tables.js'
import { insertPieces } from './piece-writes.js'
import { rest } from './rest.js'
import { nodeRow, proofColumns, spendRow } from './rows.js'
import { writeSilent } from './silence.js'
import { arrivalAfter, isSpentTwice, minedOf, newsOf, parentsIn, type Told } from './telling.js'

const NOTHING: Decision = { silenced: [], restored: [] }

/**
 * Writes transactions that are told, with their proofs, what they spend and which nodes they leave, and decides what
 * counts now.
 *
 * @throws LostConflictError where the subject would not count, and is not mined.
 */
export async function writeTransactions(
  tables: TransactionTables,
  { transactions, spends, nodes, names, outputs }: GraphRecords,
  { subject, again = false }: RecordOptions = {},
): Promise<Decision> {
  const told = await newsOf(tables, { transactions, spends, again })
  const lookedAt = new Set([...nodes, ...names, ...outputs].map(({ outpoint }) => outpoint.txid))
  const changed = [
    ...(await writeSorted(tables, told)),
    ...(await writeNodes(tables, nodes, told)),
    ...(await spendersOfNodes(tables, lookedAt, { told, spends })),
  ]
  if (changed.length > 0) {
    const decision = await decideAnew(tables, changed, lookedAt)
    if (subject !== undefined) await requireCounting(tables, subject)
    return decision
  }
  const isNew = told.fresh.some(({ txid }) => txid === subject)
  if (subject !== undefined && !isNew) await requireCounting(tables, subject)
  return NOTHING
}

/** Writes nodes. Returns the transactions that spend them, and may have rivals since. */
async function writeNodes(
  tables: TransactionTables,
  nodes: NodeRecord[],
  { fresh }: Told,
): Promise<string[]> {
  if (nodes.length === 0) return []
  const isFresh = new Set(fresh.map(({ txid }) => txid))
  const others = nodes.map(({ outpoint }) => outpoint.txid).filter((txid) => !isFresh.has(txid))
  // Of what is new here, nothing is silent yet.
  const silent = await tables.silentAmong(others)
  const isSilent = ({ outpoint }: NodeRecord): boolean => silent.has(outpoint.txid)
  await tables.insertNew('graph_nodes', nodes.filter((node) => !isSilent(node)).map(nodeRow))
  await writeSilent(tables, { outputs: [], names: [], nodes: nodes.filter(isSilent) })
  // And what spends it, was looked up with it.
  return await tables.childrenOf(others)
}

/** Those that were known before they were looked at, and what spends the same: whether they are mints, is known by now. */
async function spendersOfNodes(
  tables: TransactionTables,
  lookedAt: ReadonlySet<string>,
  { told: { fresh }, spends }: { told: Told; spends: SpendRecord[] },
): Promise<string[]> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const known = await tables.standings([...lookedAt].filter((txid) => !own.has(txid)))
  const others = new Set(known.map(({ txid }) => txid))
  const rivals = await tables.rivalsOf(spends.filter(({ spender }) => others.has(spender)))
  return [...others, ...rivals]
}

/** Returns the transactions that are to be decided on; none where nothing can be in their way. */
async function writeSorted(tables: TransactionTables, { fresh, spends, proven }: Told): Promise<string[]> {
  if (fresh.length === 0 && spends.length === 0 && proven.length === 0) return []
  const byTxid = new Map(fresh.map((transaction) => [transaction.txid, transaction]))
  const parents = parentsIn(spends)
  const txids = parentsFirst(
    new Map([...byTxid.keys(), ...parents.keys()].map((txid) => [txid, txid])),
    (txid) => parents.get(txid) ?? [],
  )
  const known = new Map((await tables.standings(txids)).map((standing) => [standing.txid, standing]))
  const mined = await minedOf(fresh, parents, (wanted) => tables.standings(wanted))
  const children = await tables.childrenOf(txids)
  const isPlain =
    proven.length === 0 &&
    known.size === 0 &&
    mined !== undefined &&
    children.length === 0 &&
    (await tables.rivalsOf(spends)).length === 0 &&
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
  await insertPieces(
    tables,
    fresh.map(({ txid, raw }) => ({ owner: hashColumn(txid), bytes: raw })),
  )
  return isPlain ? [] : [...txids, ...children, ...proven.map(({ txid }) => txid)]
}

/** Decides what counts after something of these transactions has changed. */
async function decideAnew(
  tables: TransactionTables,
  txids: string[],
  lookedAt?: ReadonlySet<string>,
): Promise<Decision> {
  const view = tables.rankedView(lookedAt)
  const ranked = await keepRanks(txids, view)
  const decision = await decide({ txids, ranked, view, rest })
  await tables.setSilent(decision.silenced, true)
  await tables.setSilent(decision.restored, false)
  return decision
}

/**
 * Takes back the proofs that lead to a block, and decides what counts without them.
 *
 * @returns That, and how many transactions had such a proof.
 */
export async function takeProofs(
  tables: TransactionTables,
  block: Block,
): Promise<{ decision: Decision; count: number }> {
  const txids = await tables.takeProofs(block)
  return { decision: txids.length === 0 ? NOTHING : await decideAnew(tables, txids), count: txids.length }
}

/** @param options.txids Parents first. Where ranks are still to be kept, `mined` is left open. */
async function insertTransactions(
  tables: TransactionTables,
  options: { fresh: Map<string, TransactionRecord>; txids: string[]; mined?: Map<string, number> },
): Promise<void> {
  const { fresh, txids, mined } = options
  if (txids.length === 0) return
  const arrival = arrivalAfter(await tables.lastArrival())
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
  const isSilent = ({ spender }: SpendRecord): boolean => known.get(spender)?.silent === true
  await tables.insertNew('graph_spends', spends.filter((spend) => !isSilent(spend)).map(spendRow))
  await tables.insertNew('graph_silent_spends', spends.filter(isSilent).map(spendRow))
}

async function requireCounting(tables: TransactionTables, subject: string): Promise<void> {
  const [standing] = await tables.standings([subject])
  if (standing === undefined || !standing.silent || standing.mined !== undefined) return
  const winner = await tables.winnerOver(subject)
  if (winner !== undefined) throw new LostConflictError(subject, winner)
}
