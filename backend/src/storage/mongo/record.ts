import type { RecordOptions } from '../../graph/graph-store.js'
import { type Block, type GraphRecords, graphRecords } from '../../graph/records.js'
import type { Decision } from '../../graph/standing.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn } from '../columns.js'
import { mapOwner } from '../merged-map.js'
import { admissionRow, appliedRow, type Facts, nameRow, nodeRow, outputRow } from '../rows.js'
import { turnedBy } from '../telling.js'
import { keepLineages, stepsOf } from './lineage.js'
import { keepMapStates } from './map-states.js'
import type { PendingDocuments } from './pending-documents.js'
import { writePieces } from './piece-writes.js'
import { settleOutputs } from './settle.js'
import { restore, silence, silentAmong, writeSilent } from './silence.js'
import { keepTraits } from './traits.js'
import { takeProofs, writeTransactions } from './transaction-writes.js'

/**
 * Adds the facts to what is pending, and decides what counts by now; what is there already stays as it is.
 *
 * @returns How many transactions have turned.
 * @throws LostConflictError where the subject would not count, and is not mined.
 */
export async function writeRecords(
  pending: PendingDocuments,
  records: GraphRecords,
  options: RecordOptions = {},
): Promise<number> {
  const decision = await writeTransactions(pending, records, options)
  const { outputs, names, admissions, contents, maps, applied } = records
  const shown = new Set(outputs.map((output) => output.content?.sha256))
  await writePieces(pending, [
    ...contents
      .filter(({ sha256 }) => shown.has(sha256))
      .map(({ sha256, bytes }) => ({ owner: hashColumn(sha256), bytes })),
    ...maps.map(({ outpoint, bytes }) => ({ owner: mapOwner({ outpoint, merged: false }), bytes })),
  ])
  await pending.insertNew('graph_admissions', admissions.map(admissionRow))
  await pending.insertNew('graph_applied', applied.map(appliedRow))
  await writeFacts(pending, { facts: { outputs, names }, records, decision })
  return turnedBy(decision, records)
}

/** Takes back the proofs that lead to a block. Returns of how many transactions, and how many have turned. */
export async function writeDisproof(
  pending: PendingDocuments,
  block: Block,
): Promise<{ count: number; turned: number }> {
  const { decision, count } = await takeProofs(pending, block)
  const records = graphRecords({})
  await writeFacts(pending, { facts: records, records, decision })
  return { count, turned: turnedBy(decision, records) }
}

/** Makes what answers follow a decision, and what is told of outputs. */
async function writeFacts(
  pending: PendingDocuments,
  { facts, records, decision }: { facts: Omit<Facts, 'nodes'>; records: GraphRecords; decision: Decision },
): Promise<void> {
  const { left, spent: freed } = await silence(pending, decision.silenced)
  const { facts: restored, spent } = await restore(pending, decision.restored)
  const silent = await silentAmong(
    pending,
    [...facts.outputs, ...facts.names].map(({ outpoint }) => outpoint.txid),
  )
  const isSilent = ({ outpoint }: { outpoint: Outpoint }): boolean => silent.has(outpoint.txid)
  const counts = (fact: { outpoint: Outpoint }): boolean => !isSilent(fact)
  await writeSilent(pending, {
    outputs: facts.outputs.filter(isSilent),
    nodes: [],
    names: facts.names.filter(isSilent),
  })
  const outputs = [...restored.outputs, ...facts.outputs.filter(counts)]
  const names = [...restored.names, ...facts.names.filter(counts)]
  await pending.insertNew('graph_outputs', outputs.map(outputRow))
  await pending.insertNew('graph_nodes', restored.nodes.map(nodeRow))
  await pending.insertNew('graph_names', names.map(nameRow))
  const settled = await settleOutputs(pending, { outputs, transactions: records.transactions })
  const told = outputs.map(({ outpoint }) => outpoint)
  const changes = await keepLineages(pending, { outputs: [...told, ...settled], names })
  await keepMapStates(pending, changes)
  const moved = [...freed, ...spent, ...records.spends.map(({ outpoint }) => outpoint)]
  await keepTraits(pending, {
    // What a lineage said at the steps that it lost, it says no more.
    changes: [...left.map(({ lineage }) => ({ lineage, from: 0 })), ...changes],
    spent: (await stepsOf(pending, moved)).map(({ lineage }) => lineage),
  })
}
