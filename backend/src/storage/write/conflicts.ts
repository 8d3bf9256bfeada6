import { type Decision, decide, updateRanks } from '../../graph/conflict-resolution.js'
import { LostConflictError } from '../../graph/errors.js'
import type { SightingRecord } from '../../graph/graph-store.js'
import { isListed } from '../../graph/listings.js'
import { UnstableReadError } from '../../graph/optimistic-read.js'
import type { Block, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { LineageChange } from '../read/lineages.js'
import { mapOwner } from '../read/read-map.js'
import { parts, unique } from '../rows/columns.js'
import { inactiveFactRows, inactiveFactsOf, type OutputFacts, spendRow } from '../rows/record-rows.js'
import type { GraphTables, Spends, TransactionTables } from './graph-tables.js'

/** A decision, and the transactions that are left to later writes. */
export type Resolution = Decision & { left: string[] }

export const NOTHING: Resolution = { deactivated: [], restored: [], left: [] }

/** The stored transactions among the judged ones, and their double spends: it is known now whether they are mints. */
export async function conflictsOverNodes(
  tables: TransactionTables,
  judged: ReadonlySet<string>,
  fresh: TransactionRecord[],
): Promise<string[]> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const known = await tables.statuses([...judged].filter((txid) => !own.has(txid)))
  const others = known.map(({ txid }) => txid)
  const spends: SpendRecord[] = []
  for (const txid of others) spends.push(...(await tables.spendsBy(txid)))
  return [...others, ...(await tables.conflictsOf(spends))]
}

/**
 * Resolves conflicts after transactions have changed.
 *
 * @param changed.ranked Those whose rank changed.
 * @param changed.earlier Those that earlier writes left.
 */
export async function resolveConflicts(
  tables: TransactionTables,
  changed: {
    txids: string[]
    ranked: string[]
    judged?: ReadonlySet<string>
    fresh?: ReadonlySet<string>
    earlier?: string[]
    limit: number
  },
): Promise<Resolution> {
  const { txids, ranked, judged, fresh = new Set(), earlier = [], limit } = changed
  const open = [...(await tables.questionable(txids)), ...earlier]
  const decided = await decide({ ...{ txids: open, ranked, view: tables.rankedView(judged), fresh }, limit })
  await tables.setInactive(decided.deactivated, true)
  await tables.setInactive(decided.restored, false)
  return decided
}

/**
 * Deletes the proofs that lead to a block, and resolves conflicts without them.
 *
 * @returns The decision, how many transactions had such a proof, and those whose rank changed.
 */
export async function takeProofs(
  tables: TransactionTables,
  block: Block,
  limit: number,
): Promise<{ decision: Resolution; count: number; ranked: string[] }> {
  const txids = await tables.takeProofs(block)
  if (txids.length === 0) return { decision: NOTHING, count: 0, ranked: [] }
  const ranked = await updateRanks(txids, tables.rankedView())
  return {
    decision: await resolveConflicts(tables, { txids, ranked, limit }),
    count: txids.length,
    ranked,
  }
}

/**
 * Records what the network said of transactions, and resolves conflicts by it.
 *
 * @returns The decision, the sightings that are new or changed, and the transactions whose rank changed.
 */
export async function recordSightings(
  tables: TransactionTables,
  records: readonly SightingRecord[],
  limit: number,
): Promise<{ decision: Resolution; changed: SightingRecord[]; ranked: string[] }> {
  const last = new Map(records.map((record) => [record.txid, record]))
  const known = await tables.sightingsOf([...last.keys()])
  const changed = [...last.values()].filter(({ txid, status }) => known.get(txid) !== status)
  for (const record of changed) await tables.setSighting(record)
  const txids = changed.map(({ txid }) => txid)
  const ranked = await updateRanks(txids, tables.rankedView())
  const decision =
    ranked.length === 0 ? NOTHING : await resolveConflicts(tables, { txids: [], ranked, limit })
  return { decision, changed, ranked }
}

/**
 * Which of the subjects lose: those that are inactive and not mined.
 *
 * @param left The transactions that are not decided yet after this write.
 * @throws UnstableReadError if one of the subjects is not decided yet.
 */
export async function lossesOf(
  tables: TransactionTables,
  subjects: readonly string[],
  left: string[],
): Promise<LostConflictError[]> {
  const losses: LostConflictError[] = []
  for (const { txid, mined, isInactive } of await tables.statuses([...subjects])) {
    if (mined !== undefined || (!isInactive && left.length === 0)) continue
    // Its winner or its parents may be about to become inactive: that is decided first.
    if (left.length > 0 || (await tables.hasBacklog('decide')))
      throw new UnstableReadError(
        'conflicts of this transaction are still being resolved; submit it again in a moment',
      )
    const reason = await tables.reasonAgainst(txid)
    if (reason !== undefined) losses.push(new LostConflictError(txid, reason))
  }
  return losses
}

/** Two decisions of one write as one. @param gone Transactions that were deleted in between. */
export function mergeDecisions(first: Resolution, second: Resolution, gone: ReadonlySet<string>): Resolution {
  const net = (changed: keyof Decision, undone: keyof Decision): string[] => [
    ...first[changed].filter((txid) => !gone.has(txid) && !second[undone].includes(txid)),
    ...second[changed].filter((txid) => !first[undone].includes(txid)),
  ]
  return {
    deactivated: net('deactivated', 'restored'),
    restored: net('restored', 'deactivated'),
    left: unique([...first.left.filter((txid) => !gone.has(txid)), ...second.left], String),
  }
}

/**
 * Rows of inactive transactions live in shadow tables that no read touches, and move back when the transactions are
 * restored. So the tables that reads use hold active transactions only.
 */

/** How many transactions, and how many of their rows, are moved at once: the statements block the thread. */
const TRANSACTIONS = 25
const ROWS = 200

interface Deactivated {
  /** The lineages that lost outputs. */
  left: LineageChange[]
  /** These outputs. */
  gone: Outpoint[]
  /** The outpoints that the transactions spent. */
  spent: Outpoint[]
}

/** Writes the output records of inactive transactions. */
export async function writeInactive(tables: TransactionTables, facts: OutputFacts): Promise<void> {
  await tables.insertNew('graph_silent_facts', inactiveFactRows(facts))
}

/** Moves the rows of transactions into the shadow tables. */
export async function deactivate(
  { transactions, outputs }: GraphTables,
  txids: string[],
): Promise<Deactivated> {
  const spent = await moveSpends(transactions, txids, { from: 'graph_spends', to: 'graph_silent_spends' })
  const left: LineageChange[] = []
  const gone: Outpoint[] = []
  for (const part of parts(txids, TRANSACTIONS)) {
    await inPages(async () => {
      const { merged, ...facts } = await transactions.factsOf(part, ROWS)
      // Carriers are derived again if outputs that received them are restored.
      await writeInactive(transactions, {
        ...facts,
        outputs: facts.outputs.filter(({ carrier }) => !carrier),
      })
      const own = facts.outputs.map(({ outpoint }) => outpoint)
      for (const change of await outputs.stepsOf(own)) left.push(change)
      for (const outpoint of own) gone.push(outpoint)
      await transactions.deleteChunks(merged.map((outpoint) => mapOwner({ outpoint, merged: true })))
      transactions.listings.count({
        names: -facts.names.length,
        inscriptions: -facts.outputs.filter(isListed).length,
      })
      const others = [...facts.nodes, ...facts.names].map(({ outpoint }) => outpoint)
      await transactions.deleteFacts(unique([...own, ...others], formatOutpoint))
      return own.length
    })
  }
  return { left, gone, spent }
}

/** Takes the rows of restored transactions out of the shadow tables. The caller writes the facts as if they were new. */
export async function restore(
  tables: TransactionTables,
  txids: string[],
): Promise<{ facts: OutputFacts; spent: Outpoint[] }> {
  const spent = await moveSpends(tables, txids, { from: 'graph_silent_spends', to: 'graph_spends' })
  const facts: OutputFacts = { outputs: [], nodes: [], names: [] }
  for (const part of parts(txids, TRANSACTIONS)) {
    const found: { kind: string; body: unknown }[] = []
    await inPages(async () => {
      const rows = await tables.takeInactiveFacts(part, ROWS)
      for (const row of rows) found.push(row)
      return rows.length
    })
    const { outputs, nodes, names } = inactiveFactsOf(found, part)
    for (const output of outputs) facts.outputs.push(output)
    facts.nodes.push(...nodes)
    facts.names.push(...names)
  }
  return { facts, spent }
}

async function moveSpends(
  tables: TransactionTables,
  txids: string[],
  { from, to }: { from: Spends; to: Spends },
): Promise<Outpoint[]> {
  const moved: Outpoint[] = []
  for (const spenders of parts(txids, TRANSACTIONS)) {
    await inPages(async () => {
      const spends = await tables.takeSpends({ from, spenders, limit: ROWS })
      await tables.insertNew(to, spends.map(spendRow))
      for (const { outpoint } of spends) moved.push(outpoint)
      return spends.length
    })
  }
  return moved
}

/** Repeats a move of {@link ROWS} rows until it moves fewer. @param move Returns how many it moved. */
async function inPages(move: () => Promise<number>): Promise<void> {
  for (let moved = ROWS; moved === ROWS; await yieldBetweenStatements()) moved = await move()
}
