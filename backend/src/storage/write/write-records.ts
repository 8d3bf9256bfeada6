import type { Decision } from '../../graph/conflict-resolution.js'
import { type Dependency, dependency } from '../../graph/dependencies.js'
import type { LostConflictError } from '../../graph/errors.js'
import type { RecordedSightings, SightingRecord } from '../../graph/graph-store.js'
import {
  type AdmissionRecord,
  type Block,
  type GraphRecords,
  graphRecords,
  type OutputRecord,
} from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { mapOwner } from '../read/read-map.js'
import { hashColumn, isComplete, outpointPair, unique } from '../rows/columns.js'
import {
  admissionRow,
  appliedRow,
  nameRow,
  nodeRow,
  type OutputFacts,
  outputRow,
} from '../rows/record-rows.js'
import { type BacklogItems, emptyBacklog, leaveBacklog, reevaluationsOf, takeBacklog } from './backlog.js'
import { writeChunks } from './blob-chunks.js'
import {
  deactivate,
  type Resolution,
  recordSightings,
  restore,
  takeProofs,
  writeInactive,
} from './conflicts.js'
import type { GraphTables } from './graph-tables.js'
import { decideParents, indexFirstAttributes, indexLineages, queueAncestors } from './index-ordinals.js'
import { linkLineages, resolvePredecessors, writeCarriers, writeOutputs } from './link-lineages.js'
import { listNames } from './listings.js'
import { endWaiting } from './pending.js'
import { type WriteOptions, writeTransactions } from './write-transactions.js'

const NONE: ReadonlySet<string> = new Set()

/** The outcome of a write. */
interface Recorded {
  /** How many stored transactions became inactive or active again. */
  reorganised: number
  /** What has changed of all that is derived from records. */
  derived: Dependency[]
  /** The new admissions. */
  admitted: AdmissionRecord[]
  /** The subjects that lost, and wait. */
  lost: LostConflictError[]
}

/** Does work that earlier writes left ({@link BacklogItems}). */
export async function writeBacklog(tables: GraphTables, options: WriteOptions = {}): Promise<Recorded> {
  const earlier = await takeBacklog(tables.transactions, reevaluationsOf(options.admission))
  return await writeRecords(tables, graphRecords({}), { ...options, earlier })
}

/**
 * Writes records, derives admissions if the store does that, and resolves conflicts. Stored records stay as they are.
 *
 * @throws LostConflictError if a subject would be inactive and is not mined, unless it may wait.
 */
export async function writeRecords(
  tables: GraphTables,
  newRecords: GraphRecords,
  options: WriteOptions = {},
): Promise<Recorded> {
  const { admission, earlier = emptyBacklog() } = options
  const written = await writeTransactions(tables, newRecords, options)
  const { decision, ranked, records, inserted, left, lost } = written
  const { outputs, names, admissions, contents, maps, applied } = records
  const wanted = new Set(outputs.map((output) => output.content?.sha256))
  await writeChunks(tables.transactions, [
    ...contents
      .filter(({ sha256 }) => wanted.has(sha256))
      .map(({ sha256, bytes }) => ({ owner: hashColumn(sha256), bytes })),
    ...maps.map(({ outpoint, bytes }) => ({ owner: mapOwner({ outpoint, merged: false }), bytes })),
  ])
  await tables.transactions.scores.note(admissions)
  await tables.transactions.insertNew('graph_admissions', admissions.map(admissionRow))
  await tables.transactions.insertNew('graph_applied', applied.map(appliedRow))
  const { reorganised, derived, ...others } = await writeFacts(tables, {
    facts: { outputs, names },
    records,
    decision,
    earlier,
    limit: reevaluationsOf(admission),
    // If the host's engine decides admissions, it may not have seen every stored coin: then there are no carriers.
    ...(admission && { inserted }),
  })
  await leaveBacklog(tables.transactions, { ...left, ...others })
  return {
    reorganised,
    derived: [...derived, ...ranked.map(dependency.tier)],
    admitted: options.again ? [] : admissions,
    lost,
  }
}

/** Deletes the proofs that lead to a block. Returns how many, and what became of conflicts. */
export async function writeDisproof(
  tables: GraphTables,
  block: Block,
  options: Pick<WriteOptions, 'admission'> = {},
): Promise<{ count: number } & Redecided> {
  const limit = reevaluationsOf(options.admission)
  const { count, ...resolved } = await takeProofs(tables.transactions, block, limit)
  return { count, ...(await writeDecision(tables, resolved, options)) }
}

/** Records what the network said of transactions. Returns what was new, and what became of conflicts. */
export async function writeSightings(
  tables: GraphTables,
  records: readonly SightingRecord[],
  options: Pick<WriteOptions, 'admission'> = {},
): Promise<RecordedSightings & Redecided> {
  const limit = reevaluationsOf(options.admission)
  const { changed, ...resolved } = await recordSightings(tables.transactions, records, limit)
  const { restored, deactivated } = resolved.decision
  return { changed, restored, deactivated, ...(await writeDecision(tables, resolved, options)) }
}

type Redecided = Omit<Recorded, 'admitted' | 'lost'>

/** Writes what was decided about stored transactions whose rank changed. */
async function writeDecision(
  tables: GraphTables,
  { decision, ranked }: { decision: Resolution; ranked: string[] },
  { admission }: Pick<WriteOptions, 'admission'>,
): Promise<Redecided> {
  const records = graphRecords({})
  const limit = reevaluationsOf(admission)
  const left = { ...emptyBacklog(), decide: decision.left }
  if (admission !== undefined)
    left.keep = await endWaiting(tables, [...ranked, ...decision.restored], { limit, ...admission })
  const { reorganised, derived, ...others } = await writeFacts(tables, {
    ...{ facts: records, records, decision },
    ...{ earlier: emptyBacklog(), limit },
    ...(admission && { inserted: new Map() }),
  })
  await leaveBacklog(tables.transactions, { ...left, ...others })
  return { reorganised, derived: [...derived, ...ranked.map(dependency.tier)] }
}

/** Turns the carriers among admitted outputs into admitted outputs. */
async function admitCarriers({ outputs: tables }: GraphTables, outputs: OutputRecord[]): Promise<void> {
  const admitted = new Map(
    outputs.filter(({ carrier }) => !carrier).map((output) => [formatOutpoint(output.outpoint), output]),
  )
  const carriers = await tables.carriersAmong([...admitted.values()].map(({ outpoint }) => outpoint))
  const rows = carriers
    .flatMap((outpoint) => admitted.get(formatOutpoint(outpoint)) ?? [])
    // They stay where they are.
    .map((output) => outputRow(output, { lineage: outpointPair(output.outpoint), step: 0 }))
  await tables.admitCarriers(rows)
}

/**
 * Writes the tables that reads use: applies a decision and adds new output records.
 *
 * @returns How many stored transactions became inactive or active again, what changed of what is derived, and the items left
 * for later writes.
 */
async function writeFacts(
  tables: GraphTables,
  {
    facts,
    records,
    decision,
    earlier,
    limit,
    inserted,
  }: {
    facts: Omit<OutputFacts, 'nodes'>
    records: GraphRecords
    decision: Decision
    earlier: Pick<BacklogItems, 'resolve' | 'carry' | 'link' | 'claim'>
    limit: number
    /** New raw transactions by txid, if the store derives admissions. */
    inserted?: ReadonlyMap<string, Uint8Array>
  },
): Promise<Redecided & Pick<BacklogItems, 'resolve' | 'carry' | 'link' | 'claim'>> {
  const { left, gone, spent: freed } = await deactivate(tables, decision.deactivated)
  const { facts: restored, spent } = await restore(tables.transactions, decision.restored)
  // Offered again are the outputs of what is restored, and those that nothing spends any more.
  await tables.transactions.scores.renewTransactions(decision.restored)
  await tables.transactions.scores.renewOutputs(freed)
  const inactive = await tables.transactions.inactiveAmong(
    [...facts.outputs, ...facts.names].map(({ outpoint }) => outpoint.txid),
  )
  const isInactive = ({ outpoint }: { outpoint: Outpoint }): boolean => inactive.has(outpoint.txid)
  const isActive = (fact: { outpoint: Outpoint }): boolean => !isInactive(fact)
  await writeInactive(tables.transactions, {
    outputs: facts.outputs.filter(isInactive),
    nodes: [],
    names: facts.names.filter(isInactive),
  })
  const newOutputs = facts.outputs.filter(isActive)
  const isRestored = new Set(decision.restored)
  const outputs = [...restored.outputs, ...newOutputs]
  const names = [...restored.names, ...facts.names.filter(isActive)]
  await writeOutputs(tables, { outputs, restored: restored.outputs.length, names })
  if (inserted !== undefined) await admitCarriers(tables, outputs)
  await tables.transactions.insertNew('graph_nodes', restored.nodes.map(nodeRow))
  const recencies = await listNames(tables, names)
  const nameRows = names.map((name) => nameRow(name, recencies.get(name.outpoint.txid)))
  await tables.transactions.insertNew('graph_names', nameRows)
  // The values of those whose bytes are stored are known already.
  const transactions = inserted
    ? records.transactions.filter(({ txid }) => inserted.has(txid))
    : records.transactions
  const { resolved, left: resolve } = await resolvePredecessors(tables, {
    // Of new transactions, all is resolved that can be: they were judged by the same values.
    ...{ outputs, isResolved: (txid) => inserted?.has(txid) === true && !isRestored.has(txid) },
    ...{ transactions, limit, left: earlier.resolve },
  })
  const added = [...outputs.map(({ outpoint }) => outpoint), ...resolved]
  const {
    carriers,
    removed,
    left: carry,
  } = inserted === undefined
    ? { carriers: [], removed: [], left: [] }
    : await writeCarriers(tables, {
        ...{ outputs: added, transactions: inserted, left: earlier.carry, limit },
        active: [...inserted.keys(), ...decision.restored],
        freed: [...freed, ...(await tables.outputs.coinsOf(names.map(({ outpoint }) => outpoint)))],
      })
  const linked = await linkLineages(tables, {
    ...{ outputs: [...carriers, ...added], resolved, names, gone, limit },
    left: earlier.link,
  })
  const claiming = outputs.filter(({ claimedParent }) => claimedParent !== undefined)
  const { changed: claims, left: claim } = await decideParents(tables, {
    txids: unique(
      [
        ...earlier.claim,
        ...linked.claimants,
        ...(await tables.outputs.claimantsOf([...carriers, ...outputs.map(({ outpoint }) => outpoint)])),
        ...claiming.map(({ outpoint }) => outpoint.txid),
      ],
      String,
    ),
    limit,
  })
  const { alone, onlyInscribed } =
    inserted === undefined
      ? { alone: NONE, onlyInscribed: NONE }
      : await indexFirstAttributes(tables, {
          outputs: newOutputs,
          names: new Set(names.map(({ outpoint }) => formatOutpoint(outpoint))),
        })
  const others = linked.changes.filter(({ outpoint }) => !alone.has(formatOutpoint(outpoint)))
  const inscribed = others.filter(({ outpoint }) => !onlyInscribed.has(formatOutpoint(outpoint)))
  const moved = [...freed, ...spent, ...records.spends.map(({ outpoint }) => outpoint)]
  const touched = [...(await tables.outputs.stepsOf(moved)), ...others]
  const { begun, changes } = linked
  const former = [...linked.former, ...removed]
  const lost = [...left, ...linked.lost, ...claims]
  const firsts = await indexLineages(tables, { changed: inscribed, lost, touched, former })
  // Most changes are a transfer at the end.
  const changed = new Set(changes.map(({ outpoint }) => formatOutpoint(outpoint)))
  const incomplete = changes.filter(({ lineage }) => !isComplete(lineage)).map(({ outpoint }) => outpoint)
  await queueAncestors(tables, {
    firsts: [
      ...firsts.filter((first) => changed.has(formatOutpoint(first))),
      ...incomplete.filter((outpoint) => alone.has(formatOutpoint(outpoint))),
    ],
    former: [...former, ...begun],
  })
  const submitted = new Set(records.transactions.map(({ txid }) => txid))
  const reorganised =
    decision.restored.length + decision.deactivated.filter((txid) => !submitted.has(txid)).length
  if (reorganised > 0) await tables.transactions.countReorg()
  await tables.transactions.scores.write()
  await tables.transactions.listings.write()
  const isEarlier = ({ txid }: Outpoint): boolean => !inserted?.has(txid)
  const regrouped = claims.some(({ outpoint }) => isEarlier(outpoint))
  const relinked = regrouped || [...resolved, ...former, ...begun].some(isEarlier)
  const derived = [
    ...(relinked ? [dependency.lineages] : []),
    ...(regrouped ? [dependency.inscriptions] : []),
    ...tables.transactions.listings.outdated,
  ]
  return { reorganised, derived, resolve, carry, link: linked.left, claim }
}
