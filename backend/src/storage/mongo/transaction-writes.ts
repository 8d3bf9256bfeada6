import { LostConflictError } from '../../graph/conflict-error.js'
import type { RecordOptions } from '../../graph/graph-store.js'
import { parentsFirst } from '../../graph/parents-first.js'
import type { Block, GraphRecords, NodeRecord, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { type Decision, decide, keepRanks, type RankedView, type Standing } from '../../graph/standing.js'
import { hashColumn, hexOf, parts, ROWS_A_STATEMENT } from '../columns.js'
import { rest } from '../rest.js'
import { nodeRow, proofColumns, spendRow } from '../rows.js'
import {
  arrivalAfter,
  blockText,
  isSpentTwice,
  minedOf,
  type NewsView,
  newsOf,
  parentsIn,
  type Told,
} from '../telling.js'
import type { PendingDocuments } from './pending-documents.js'
import { heldPieces, insertPieces } from './piece-writes.js'
import { silentAmong, writeSilent } from './silence.js'
import { childrenOf, heightIn, rivalsOf, standings, standingView, winnerIn } from './standing-reads.js'

const NOTHING: Decision = { silenced: [], restored: [] }

/**
 * Writes transactions that are told, with their proofs, what they spend and which nodes they leave, and decides what
 * counts now.
 *
 * @throws LostConflictError where the subject would not count, and is not mined.
 */
export async function writeTransactions(
  pending: PendingDocuments,
  { transactions, spends, nodes, names, outputs }: GraphRecords,
  { subject, again = false }: RecordOptions = {},
): Promise<Decision> {
  const told = await newsOf(newsView(pending), { transactions, spends, again })
  const lookedAt = new Set([...nodes, ...names, ...outputs].map(({ outpoint }) => outpoint.txid))
  const changed = [
    ...(await writeSorted(pending, told)),
    ...(await writeNodes(pending, nodes, told)),
    ...(await spendersOfNodes(pending, lookedAt, { told, spends })),
  ]
  if (changed.length > 0) {
    const decision = await decideAnew(pending, changed, lookedAt)
    if (subject !== undefined) await requireCounting(pending, subject)
    return decision
  }
  const isNew = told.fresh.some(({ txid }) => txid === subject)
  if (subject !== undefined && !isNew) await requireCounting(pending, subject)
  return NOTHING
}

function newsView(pending: PendingDocuments): NewsView {
  return {
    held: (txids) => heldPieces(pending, txids.map(hashColumn)),
    async blocks(txids) {
      const kept = new Map<string, string>()
      for (const part of parts(txids, ROWS_A_STATEMENT)) {
        const docs = await pending.all(
          'graph_transactions',
          { _id: { $in: part.map(hashColumn) }, height: { $ne: null } },
          { fields: ['txid', 'height', 'merkle_root'] },
        )
        for (const { txid, height, merkle_root } of docs)
          kept.set(hexOf(txid), blockText({ height, root: hexOf(merkle_root) }))
      }
      return kept
    },
  }
}

/** Writes nodes. Returns the transactions that spend them, and may have rivals since. */
async function writeNodes(
  pending: PendingDocuments,
  nodes: NodeRecord[],
  { fresh }: Told,
): Promise<string[]> {
  if (nodes.length === 0) return []
  const isFresh = new Set(fresh.map(({ txid }) => txid))
  const others = nodes.map(({ outpoint }) => outpoint.txid).filter((txid) => !isFresh.has(txid))
  // Of what is new here, nothing is silent yet.
  const silent = await silentAmong(pending, others)
  const isSilent = ({ outpoint }: NodeRecord): boolean => silent.has(outpoint.txid)
  await pending.insertNew('graph_nodes', nodes.filter((node) => !isSilent(node)).map(nodeRow))
  await writeSilent(pending, { outputs: [], names: [], nodes: nodes.filter(isSilent) })
  // And what spends it, was looked up with it.
  return await childrenOf(pending, others)
}

/** Those that were known before they were looked at, and what spends the same: whether they are mints, is known by now. */
async function spendersOfNodes(
  pending: PendingDocuments,
  lookedAt: ReadonlySet<string>,
  { told: { fresh }, spends }: { told: Told; spends: SpendRecord[] },
): Promise<string[]> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const known = await standings(
    pending,
    [...lookedAt].filter((txid) => !own.has(txid)),
  )
  const others = new Set(known.map(({ txid }) => txid))
  const rivals = await rivalsOf(
    pending,
    spends.filter(({ spender }) => others.has(spender)),
  )
  return [...others, ...rivals]
}

/** Returns the transactions that are to be decided on; none where nothing can be in their way. */
async function writeSorted(pending: PendingDocuments, { fresh, spends, proven }: Told): Promise<string[]> {
  if (fresh.length === 0 && spends.length === 0 && proven.length === 0) return []
  const byTxid = new Map(fresh.map((transaction) => [transaction.txid, transaction]))
  const parents = parentsIn(spends)
  const txids = parentsFirst(
    new Map([...byTxid.keys(), ...parents.keys()].map((txid) => [txid, txid])),
    (txid) => parents.get(txid) ?? [],
  )
  const known = new Map((await standings(pending, txids)).map((standing) => [standing.txid, standing]))
  const mined = await minedOf(fresh, parents, (wanted) => standings(pending, wanted))
  const children = await childrenOf(pending, txids)
  const isPlain =
    proven.length === 0 &&
    known.size === 0 &&
    mined !== undefined &&
    children.length === 0 &&
    (await rivalsOf(pending, spends)).length === 0 &&
    !isSpentTwice(spends)
  await insertTransactions(pending, {
    fresh: byTxid,
    txids: txids.filter((txid) => !known.has(txid)),
    ...(isPlain && { mined }),
  })
  await insertSpends(pending, spends, known)
  for (const { txid, proof } of [...fresh.filter(({ txid }) => known.has(txid)), ...proven])
    await keepProof(pending, txid, proof)
  await insertPieces(
    pending,
    fresh.map(({ txid, raw }) => ({ owner: hashColumn(txid), bytes: raw })),
  )
  return isPlain ? [] : [...txids, ...children, ...proven.map(({ txid }) => txid)]
}

/** Decides what counts after something of these transactions has changed. */
async function decideAnew(
  pending: PendingDocuments,
  txids: string[],
  lookedAt?: ReadonlySet<string>,
): Promise<Decision> {
  const view = rankedView(pending, lookedAt)
  const ranked = await keepRanks(txids, view)
  const decision = await decide({ txids, ranked, view, rest })
  await keepSilent(pending, decision.silenced, true)
  await keepSilent(pending, decision.restored, false)
  return decision
}

/** Where transactions stand, and may be made to. */
function rankedView(pending: PendingDocuments, told?: ReadonlySet<string>): RankedView {
  return {
    ...standingView(pending, told),
    heightOf: (txid) => heightIn(pending, txid),
    async setRank({ txid, mined, arrival }) {
      await pending.update('graph_transactions', { _id: hashColumn(txid) }, { mined: mined ?? null, arrival })
    },
  }
}

async function keepSilent(pending: PendingDocuments, txids: string[], silent: boolean): Promise<void> {
  for (const part of parts(txids, ROWS_A_STATEMENT))
    await pending.update('graph_transactions', { _id: { $in: part.map(hashColumn) } }, { silent })
}

/**
 * Takes back the proofs that lead to a block, and decides what counts without them.
 *
 * @returns That, and how many transactions had such a proof.
 */
export async function takeProofs(
  pending: PendingDocuments,
  { height, root }: Block,
): Promise<{ decision: Decision; count: number }> {
  const inBlock = { height, merkle_root: hashColumn(root) }
  const docs = await pending.all('graph_transactions', inBlock, { fields: ['txid'] })
  await pending.update('graph_transactions', inBlock, proofColumns(undefined))
  const txids = docs.map(({ txid }) => hexOf(txid))
  return { decision: txids.length === 0 ? NOTHING : await decideAnew(pending, txids), count: txids.length }
}

/** @param options.txids Parents first. Where ranks are still to be kept, `mined` is left open. */
async function insertTransactions(
  pending: PendingDocuments,
  options: { fresh: Map<string, TransactionRecord>; txids: string[]; mined?: Map<string, number> },
): Promise<void> {
  const { fresh, txids, mined } = options
  if (txids.length === 0) return
  const last = await pending.first(
    'graph_transactions',
    {},
    { sort: { arrival: -1, txid: -1 }, fields: ['arrival'] },
  )
  const arrival = arrivalAfter(last?.arrival ?? 0)
  await pending.insertNew(
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
  pending: PendingDocuments,
  spends: SpendRecord[],
  known: Map<string, Standing>,
): Promise<void> {
  const isSilent = ({ spender }: SpendRecord): boolean => known.get(spender)?.silent === true
  await pending.insertNew('graph_spends', spends.filter((spend) => !isSilent(spend)).map(spendRow))
  await pending.insertNew('graph_silent_spends', spends.filter(isSilent).map(spendRow))
}

async function keepProof(
  pending: PendingDocuments,
  txid: string,
  proof: TransactionRecord['proof'],
): Promise<void> {
  if (proof === undefined) return
  // A proof that comes later is the newer word of the chain.
  await pending.update('graph_transactions', { _id: hashColumn(txid) }, proofColumns(proof))
}

async function requireCounting(pending: PendingDocuments, subject: string): Promise<void> {
  const [standing] = await standings(pending, [subject])
  if (standing === undefined || !standing.silent || standing.mined !== undefined) return
  const winner = await winnerIn(pending, subject)
  if (winner !== undefined) throw new LostConflictError(subject, winner)
}
