import type { Knex } from 'knex'
import type { RecordOptions } from '../../graph/graph-store.js'
import { type Block, type GraphRecords, graphRecords } from '../../graph/records.js'
import type { Decision } from '../../graph/standing.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, parts, ROWS_A_STATEMENT } from '../columns.js'
import { mapOwner } from '../merged-map.js'
import { admissionRow, appliedRow, type Facts, nameRow, nodeRow, outputRow } from '../rows.js'
import { insertNew } from './insert-new.js'
import { keepLineages, stepsOf } from './lineage.js'
import { keepMapStates } from './map-states.js'
import { writePieces } from './pieces.js'
import { settleOutputs } from './settle.js'
import { restore, silence, silentAmong, writeSilent } from './silence.js'
import { keepTraits } from './traits.js'
import { takeProofs, writeTransactions } from './transaction-writes.js'
import { countTurn } from './turns.js'

/**
 * Writes the facts inside a database transaction, and decides what counts by now; what is there already stays as it is.
 *
 * @returns How many transactions have turned.
 * @throws LostConflictError where the subject would not count, and is not mined.
 */
export async function writeRecords(
  trx: Knex.Transaction,
  records: GraphRecords,
  options: RecordOptions = {},
): Promise<number> {
  const decision = await writeTransactions(trx, records, options)
  const { outputs, names, admissions, contents, maps, applied } = records
  const shown = new Set(outputs.map((output) => output.content?.sha256))
  await writePieces(trx, [
    ...contents
      .filter(({ sha256 }) => shown.has(sha256))
      .map(({ sha256, bytes }) => ({ owner: hashColumn(sha256), bytes })),
    ...maps.map(({ outpoint, bytes }) => ({ owner: mapOwner({ outpoint, merged: false }), bytes })),
  ])
  await insertNew(trx, 'graph_admissions', admissions.map(admissionRow))
  await insertNew(trx, 'graph_applied', applied.map(appliedRow))
  await writeFacts(trx, { facts: { outputs, names }, records, decision })
  return await countTurn(trx, decision, records)
}

/** Takes back the proofs that lead to a block. Returns of how many transactions, and how many have turned. */
export async function writeDisproof(
  trx: Knex.Transaction,
  block: Block,
): Promise<{ count: number; turned: number }> {
  const { decision, count } = await takeProofs(trx, block)
  const records = graphRecords({})
  await writeFacts(trx, { facts: records, records, decision })
  return { count, turned: await countTurn(trx, decision, records) }
}

/** Makes what answers follow a decision, and what is told of outputs. */
async function writeFacts(
  trx: Knex.Transaction,
  { facts, records, decision }: { facts: Omit<Facts, 'nodes'>; records: GraphRecords; decision: Decision },
): Promise<void> {
  const { left, spent: freed } = await silence(trx, decision.silenced)
  const { facts: restored, spent } = await restore(trx, decision.restored)
  const silent = await silentAmong(
    trx,
    [...facts.outputs, ...facts.names].map(({ outpoint }) => outpoint.txid),
  )
  const aside = <Fact extends { outpoint: Outpoint }>(told: Fact[]): Fact[] =>
    told.filter(({ outpoint }) => silent.has(outpoint.txid))
  const counting = <Fact extends { outpoint: Outpoint }>(told: Fact[]): Fact[] =>
    told.filter(({ outpoint }) => !silent.has(outpoint.txid))
  await writeSilent(trx, { outputs: aside(facts.outputs), nodes: [], names: aside(facts.names) })
  const outputs = [...restored.outputs, ...counting(facts.outputs)]
  const names = [...restored.names, ...counting(facts.names)]
  for (const part of parts(outputs, ROWS_A_STATEMENT))
    await insertNew(trx, 'graph_outputs', part.map(outputRow))
  await insertNew(trx, 'graph_nodes', restored.nodes.map(nodeRow))
  await insertNew(trx, 'graph_names', names.map(nameRow))
  const settled = await settleOutputs(trx, { outputs, transactions: records.transactions })
  const told = outputs.map(({ outpoint }) => outpoint)
  const changes = await keepLineages(trx, { outputs: [...told, ...settled], names })
  await keepMapStates(trx, changes)
  const moved = [...freed, ...spent, ...records.spends.map(({ outpoint }) => outpoint)]
  await keepTraits(trx, {
    // What a lineage said at the steps that it lost, it says no more.
    changes: [...left.map(({ lineage }) => ({ lineage, from: 0 })), ...changes],
    spent: (await stepsOf(trx, moved)).map(({ lineage }) => lineage),
  })
}
