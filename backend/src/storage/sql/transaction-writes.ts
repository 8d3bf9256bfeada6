import type { Knex } from 'knex'
import { LostConflictError } from '../../graph/conflict-error.js'
import type { RecordOptions } from '../../graph/graph-store.js'
import { parentsFirst } from '../../graph/parents-first.js'
import type { Block, GraphRecords, NodeRecord, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { type Decision, decide, keepRanks, type Standing } from '../../graph/standing.js'
import { hashColumn, hexOf, parts, ROWS_A_STATEMENT } from '../columns.js'
import { rest } from '../rest.js'
import { nodeRow, proofColumns, spendRow } from '../rows.js'
import { arrivalAfter, isSpentTwice, minedOf, newsOf, parentsIn, type Told } from '../telling.js'
import { insertNew } from './insert-new.js'
import { newsView } from './news.js'
import { insertPieces } from './pieces.js'
import { silentAmong, writeSilent } from './silence.js'
import { knexReader } from './sql-reader.js'
import { childrenOf, rankedView, rivalsOf, standings, winnerIn } from './standing-rows.js'

const NOTHING: Decision = { silenced: [], restored: [] }

/**
 * Writes transactions that are told, with their proofs, what they spend and which nodes they leave, and decides what
 * counts now.
 *
 * @throws LostConflictError where the subject would not count, and is not mined.
 */
export async function writeTransactions(
  trx: Knex.Transaction,
  { transactions, spends, nodes, names, outputs }: GraphRecords,
  { subject, again = false }: RecordOptions = {},
): Promise<Decision> {
  const told = await newsOf(newsView(trx), { transactions, spends, again })
  const lookedAt = new Set([...nodes, ...names, ...outputs].map(({ outpoint }) => outpoint.txid))
  const changed = [
    ...(await writeSorted(trx, told)),
    ...(await writeNodes(trx, nodes, told)),
    ...(await spendersOfNodes(trx, lookedAt, { told, spends })),
  ]
  if (changed.length > 0) {
    const decision = await decideAnew(trx, changed, lookedAt)
    if (subject !== undefined) await requireCounting(trx, subject)
    return decision
  }
  const isNew = told.fresh.some(({ txid }) => txid === subject)
  if (subject !== undefined && !isNew) await requireCounting(trx, subject)
  return NOTHING
}

/** Writes nodes. Returns the transactions that spend them, and may have rivals since. */
async function writeNodes(trx: Knex.Transaction, nodes: NodeRecord[], { fresh }: Told): Promise<string[]> {
  if (nodes.length === 0) return []
  const isFresh = new Set(fresh.map(({ txid }) => txid))
  const others = nodes.map(({ outpoint }) => outpoint.txid).filter((txid) => !isFresh.has(txid))
  // Of what is new here, nothing is silent yet.
  const silent = await silentAmong(trx, others)
  const isSilent = ({ outpoint }: NodeRecord): boolean => silent.has(outpoint.txid)
  await insertNew(trx, 'graph_nodes', nodes.filter((node) => !isSilent(node)).map(nodeRow))
  await writeSilent(trx, { outputs: [], names: [], nodes: nodes.filter(isSilent) })
  // And what spends it, was looked up with it.
  return await childrenOf(knexReader(trx), others)
}

/** Those that were known before they were looked at, and what spends the same: whether they are mints, is known by now. */
async function spendersOfNodes(
  trx: Knex.Transaction,
  lookedAt: ReadonlySet<string>,
  { told: { fresh }, spends }: { told: Told; spends: SpendRecord[] },
): Promise<string[]> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const reader = knexReader(trx)
  const known = await standings(
    reader,
    [...lookedAt].filter((txid) => !own.has(txid)),
  )
  const others = new Set(known.map(({ txid }) => txid))
  const rivals = await rivalsOf(
    reader,
    spends.filter(({ spender }) => others.has(spender)),
  )
  return [...others, ...rivals]
}

/** Returns the transactions that are to be decided on; none where nothing can be in their way. */
async function writeSorted(trx: Knex.Transaction, { fresh, spends, proven }: Told): Promise<string[]> {
  if (fresh.length === 0 && spends.length === 0 && proven.length === 0) return []
  const reader = knexReader(trx)
  const byTxid = new Map(fresh.map((transaction) => [transaction.txid, transaction]))
  const parents = parentsIn(spends)
  const txids = parentsFirst(
    new Map([...byTxid.keys(), ...parents.keys()].map((txid) => [txid, txid])),
    (txid) => parents.get(txid) ?? [],
  )
  const known = new Map((await standings(reader, txids)).map((standing) => [standing.txid, standing]))
  const mined = await minedOf(fresh, parents, (wanted) => standings(reader, wanted))
  const children = await childrenOf(reader, txids)
  const isPlain =
    proven.length === 0 &&
    known.size === 0 &&
    mined !== undefined &&
    children.length === 0 &&
    (await rivalsOf(reader, spends)).length === 0 &&
    !isSpentTwice(spends)
  await insertTransactions(trx, {
    fresh: byTxid,
    txids: txids.filter((txid) => !known.has(txid)),
    ...(isPlain && { mined }),
  })
  await insertSpends(trx, spends, known)
  for (const { txid, proof } of [...fresh.filter(({ txid }) => known.has(txid)), ...proven])
    await keepProof(trx, txid, proof)
  await insertPieces(
    trx,
    fresh.map(({ txid, raw }) => ({ owner: hashColumn(txid), bytes: raw })),
  )
  return isPlain ? [] : [...txids, ...children, ...proven.map(({ txid }) => txid)]
}

/** Decides what counts after something of these transactions has changed. */
async function decideAnew(
  trx: Knex.Transaction,
  txids: string[],
  lookedAt?: ReadonlySet<string>,
): Promise<Decision> {
  const view = rankedView(trx, lookedAt)
  const ranked = await keepRanks(txids, view)
  const decision = await decide({ txids, ranked, view, rest })
  await keepSilent(trx, decision.silenced, true)
  await keepSilent(trx, decision.restored, false)
  return decision
}

async function keepSilent(trx: Knex.Transaction, txids: string[], silent: boolean): Promise<void> {
  for (const part of parts(txids, ROWS_A_STATEMENT))
    await trx('graph_transactions').whereIn('txid', part.map(hashColumn)).update({ silent })
}

/**
 * Takes back the proofs that lead to a block, and decides what counts without them.
 *
 * @returns That, and how many transactions had such a proof.
 */
export async function takeProofs(
  trx: Knex.Transaction,
  { height, root }: Block,
): Promise<{ decision: Decision; count: number }> {
  const inBlock = () => trx('graph_transactions').where({ height, merkle_root: hashColumn(root) })
  const rows = await inBlock().select('txid')
  await inBlock().update(proofColumns(undefined))
  const txids = rows.map(({ txid }) => hexOf(txid))
  return { decision: txids.length === 0 ? NOTHING : await decideAnew(trx, txids), count: txids.length }
}

/** @param options.txids Parents first. Where ranks are still to be kept, `mined` is left open. */
async function insertTransactions(
  trx: Knex.Transaction,
  options: { fresh: Map<string, TransactionRecord>; txids: string[]; mined?: Map<string, number> },
): Promise<void> {
  const { fresh, txids, mined } = options
  if (txids.length === 0) return
  const last = await trx('graph_transactions').max('arrival as arrival').first()
  const arrival = arrivalAfter(Number(last?.arrival ?? 0))
  await insertNew(
    trx,
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
  trx: Knex.Transaction,
  spends: SpendRecord[],
  known: Map<string, Standing>,
): Promise<void> {
  const isSilent = ({ spender }: SpendRecord): boolean => known.get(spender)?.silent === true
  await insertNew(trx, 'graph_spends', spends.filter((spend) => !isSilent(spend)).map(spendRow))
  await insertNew(trx, 'graph_silent_spends', spends.filter(isSilent).map(spendRow))
}

async function keepProof(
  trx: Knex.Transaction,
  txid: string,
  proof: TransactionRecord['proof'],
): Promise<void> {
  if (proof === undefined) return
  // A proof that comes later is the newer word of the chain.
  await trx('graph_transactions')
    .where({ txid: hashColumn(txid) })
    .update(proofColumns(proof))
}

async function requireCounting(trx: Knex.Transaction, subject: string): Promise<void> {
  const reader = knexReader(trx)
  const [standing] = await standings(reader, [subject])
  if (standing === undefined || !standing.silent || standing.mined !== undefined) return
  const winner = await winnerIn(reader, subject)
  if (winner !== undefined) throw new LostConflictError(subject, winner)
}
