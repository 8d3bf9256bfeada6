import type { Decision } from '../../graph/conflict-resolution.js'
import {
  type AdmissionRecord,
  type Block,
  type GraphRecords,
  graphRecords,
  type OutputRecord,
} from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { mapOwner } from '../read/read-map.js'
import { hashColumn } from '../rows/columns.js'
import { admissionRow, appliedRow, type Facts, nameRow, nodeRow, outputRow } from '../rows/record-rows.js'
import { type Backlog, emptyBacklog, leaveBacklog, reevaluationsOf, takeBacklog } from './backlog.js'
import { writeChunks } from './blob-chunks.js'
import { deactivate, restore, writeInactive } from './deactivate.js'
import type { GraphTables } from './graph-tables.js'
import { indexAttributes, indexFirstAttributes, tipsOf } from './index-attributes.js'
import { linkLineages, writeCarriers, writeOutputs } from './link-lineages.js'
import { writeMapSnapshots } from './map-snapshots.js'
import { statusChanges } from './new-records.js'
import { resolvePredecessors } from './resolve-predecessors.js'
import { takeProofs, type WriteOptions, writeTransactions } from './write-transactions.js'

const NONE: ReadonlySet<string> = new Set()

/** What came of a write. */
export interface Recorded {
  /** How many transactions became inactive or active again. */
  reorganised: number
  /** What was admitted, and was not before. */
  admitted: AdmissionRecord[]
}

/** Goes on with what earlier writes have left to be done ({@link Backlog}). */
export async function writeBacklog(tables: GraphTables, options: WriteOptions = {}): Promise<Recorded> {
  const earlier = await takeBacklog(tables.transactions, reevaluationsOf(options.admission))
  return await writeRecords(tables, graphRecords({}), { ...options, earlier })
}

/**
 * Writes the facts, derives what follows from them where the store does, and decides what counts by now; what is there
 * already stays as it is.
 *
 * @throws LostConflictError where the subject would not count, and is not mined.
 */
export async function writeRecords(
  tables: GraphTables,
  told: GraphRecords,
  options: WriteOptions = {},
): Promise<Recorded> {
  const { admission, earlier = emptyBacklog() } = options
  const { decision, records, arrived, left } = await writeTransactions(tables, told, options)
  const { outputs, names, admissions, contents, maps, applied } = records
  const shown = new Set(outputs.map((output) => output.content?.sha256))
  await writeChunks(tables.transactions, [
    ...contents
      .filter(({ sha256 }) => shown.has(sha256))
      .map(({ sha256, bytes }) => ({ owner: hashColumn(sha256), bytes })),
    ...maps.map(({ outpoint, bytes }) => ({ owner: mapOwner({ outpoint, merged: false }), bytes })),
  ])
  await tables.transactions.insertNew('graph_admissions', admissions.map(admissionRow))
  await tables.transactions.insertNew('graph_applied', applied.map(appliedRow))
  const { reorganised, ...others } = await writeFacts(tables, {
    facts: { outputs, names },
    records,
    decision,
    earlier,
    limit: reevaluationsOf(admission),
    // Where an engine judges, it may not have been asked about a coin that is known.
    ...(admission && { arrived }),
  })
  await leaveBacklog(tables.transactions, { ...left, ...others })
  return { reorganised, admitted: options.again ? [] : admissions }
}

/** Takes back the proofs that lead to a block. Returns of how many transactions, and how many became inactive or active again. */
export async function writeDisproof(
  tables: GraphTables,
  block: Block,
): Promise<{ count: number; reorganised: number }> {
  const { decision, count } = await takeProofs(tables.transactions, block)
  const records = graphRecords({})
  const { reorganised, ...others } = await writeFacts(tables, {
    ...{ facts: records, records, decision },
    ...{ earlier: emptyBacklog(), limit: reevaluationsOf() },
  })
  await leaveBacklog(tables.transactions, { ...emptyBacklog(), ...others, decide: decision.left })
  return { count, reorganised }
}

/** Of outputs that are admitted, some may have been carriers until now. */
async function admitCarriers({ outputs: tables }: GraphTables, outputs: OutputRecord[]): Promise<void> {
  const admitted = new Map(
    outputs.filter(({ carrier }) => !carrier).map((output) => [formatOutpoint(output.outpoint), output]),
  )
  const carriers = await tables.carriersAmong([...admitted.values()].map(({ outpoint }) => outpoint))
  const rows = carriers
    .flatMap((outpoint) => admitted.get(formatOutpoint(outpoint)) ?? [])
    .map((output) => outputRow(output))
  await tables.admitCarriers(rows)
}

/**
 * Makes what answers follow a decision, and what is told of outputs.
 *
 * @returns How many transactions became inactive or active again, and what is left for the writes after this one.
 */
async function writeFacts(
  tables: GraphTables,
  {
    facts,
    records,
    decision,
    earlier,
    limit,
    arrived,
  }: {
    facts: Omit<Facts, 'nodes'>
    records: GraphRecords
    decision: Decision
    earlier: Pick<Backlog, 'settle' | 'carry'>
    limit: number
    /** Transactions that are new, by txid; where the store derives admissions. */
    arrived?: ReadonlyMap<string, Uint8Array>
  },
): Promise<{ reorganised: number } & Pick<Backlog, 'settle' | 'carry'>> {
  const { left, gone, spent: freed } = await deactivate(tables, decision.deactivated)
  const { facts: restored, spent } = await restore(tables.transactions, decision.restored)
  const silent = await tables.transactions.inactiveAmong(
    [...facts.outputs, ...facts.names].map(({ outpoint }) => outpoint.txid),
  )
  const isInactive = ({ outpoint }: { outpoint: Outpoint }): boolean => silent.has(outpoint.txid)
  const counts = (fact: { outpoint: Outpoint }): boolean => !isInactive(fact)
  const { outputs: told, names: origins } = facts
  await writeInactive(tables.transactions, {
    outputs: told.filter(isInactive),
    nodes: [],
    names: origins.filter(isInactive),
  })
  const outputs = [...restored.outputs, ...told.filter(counts)]
  const names = [...restored.names, ...origins.filter(counts)]
  await writeOutputs(tables, outputs, names)
  if (arrived !== undefined) await admitCarriers(tables, outputs)
  await tables.transactions.insertNew('graph_nodes', restored.nodes.map(nodeRow))
  await tables.transactions.insertNew('graph_names', names.map(nameRow))
  const { transactions } = records
  const { settled, left: settle } = await resolvePredecessors(tables, {
    ...{ outputs, transactions, limit },
    left: earlier.settle,
  })
  const added = [...outputs.map(({ outpoint }) => outpoint), ...settled]
  const { carriers, left: carry } =
    arrived === undefined
      ? { carriers: [], left: [] }
      : await writeCarriers(tables, { outputs: added, transactions: arrived, left: earlier.carry, limit })
  const changes = await linkLineages(tables, { outputs: [...carriers, ...added], names, gone })
  const { alone, quiet } =
    arrived === undefined
      ? { alone: NONE, quiet: NONE }
      : await indexFirstAttributes(tables, {
          outputs: told.filter((output) => counts(output)),
          names: new Set(names.map(({ outpoint }) => formatOutpoint(outpoint))),
        })
  const others = changes.filter(({ lineage }) => !alone.has(formatOutpoint(lineage)))
  const speaking = others.filter(({ lineage }) => !quiet.has(formatOutpoint(lineage)))
  const moved = [...freed, ...spent, ...records.spends.map(({ outpoint }) => outpoint)]
  const touched = [...left, ...(await tables.outputs.stepsOf(moved)), ...others].map(({ lineage }) => lineage)
  const tips = await tipsOf(tables, touched)
  await writeMapSnapshots(tables, speaking, tips)
  // What a lineage said at the steps that it lost, it says no more.
  const lost = left.map(({ lineage }) => ({ lineage, from: 0 }))
  await indexAttributes(tables, { changes: [...lost, ...speaking], spent: touched, tips })
  const reorganised = statusChanges(decision, records)
  if (reorganised > 0) await tables.transactions.countReorg()
  return { reorganised, settle, carry }
}
