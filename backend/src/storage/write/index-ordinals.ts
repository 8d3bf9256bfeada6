import { WHOLE_TRANSACTION } from '../../graph/ancestor-queue.js'
import { type Attribute, attribute, mapAttributes } from '../../graph/attributes.js'
import type { BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import { PARTS_OF_ONE } from '../../graph/conflict-resolution.js'
import { dependency } from '../../graph/dependencies.js'
import { encodeMapState } from '../../graph/map-coder.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../protocol/outpoint.js'
import type { LineageChange, Lineages, Maps, Steps } from '../read/lineages.js'
import { mapOwner, mergedMap, partsBackwards } from '../read/read-map.js'
import {
  formatLineage,
  hashColumn,
  isComplete,
  type Lineage,
  outpointColumns,
  outpointOf,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import { blockedRow, type RecordRow } from '../rows/record-rows.js'
import { writeChunks } from './blob-chunks.js'
import type { Claim, GraphTables, PlacedOutput, Tip } from './graph-tables.js'
import { eachPart } from './transaction-tables.js'

/** The attributes that follow from the tip alone, and those that follow from the lineage up to it. */
const OF_TIP: Attribute['kind'][] = ['owner']
const OF_LINEAGE: Attribute['kind'][] = ['contentType', 'parent', 'map']

/** The tips of lineages, by lineage as text ({@link formatLineage}). */
type Tips = ReadonlyMap<string, Tip>

/**
 * Updates what reads look up along lineages: MAP snapshots and attributes. An incomplete lineage has no attributes but its
 * owner: the others follow from its origin.
 *
 * @param lineages.changed Those with new steps, or with steps to be read again.
 * @param lineages.lost Those that lost steps, and so may have lost attributes.
 * @param lineages.touched Those that changed, and those whose outputs were spent or are no longer, with one of their outputs.
 * @param lineages.former Outputs that may have been the first of their lineage, and are not any more.
 * @returns The first outputs of the incomplete ones.
 */
export async function indexLineages(
  tables: GraphTables,
  lineages: {
    changed: LineageChange[]
    lost: LineageChange[]
    touched: PlacedOutput[]
    former: Outpoint[]
  },
): Promise<Outpoint[]> {
  const { changed, former } = lineages
  const lost = lineages.lost
    .filter(({ lineage }) => isComplete(lineage))
    .map(({ lineage }) => ({ lineage, from: 0, outpoint: outpointAt(lineage) }))
  const touched = unique([...lineages.touched, ...lost], ({ lineage }) => formatLineage(lineage))
  const found = await tables.outputs.tipsOf(touched.map(({ outpoint }) => outpoint))
  const tips = new Map(found.map((tip) => [formatLineage(tip.lineage), tip]))
  const complete = changed.filter(({ lineage }) => isComplete(lineage))
  await writeMapSnapshots(tables, complete, tips)
  const all = touched.map(({ lineage }) => lineage)
  await indexAttributes(tables, { changes: [...lost, ...complete], lineages: all, tips, former })
  return found.filter(({ lineage }) => !isComplete(lineage)).map(({ first }) => first)
}

/** The first output of a complete lineage. */
function outpointAt([txid, vout]: Lineage): Outpoint {
  return outpointOf({ txid, vout })
}

/** Updates the attributes of lineages that changed, or whose outputs were spent. */
async function indexAttributes(
  tables: GraphTables,
  {
    changes,
    lineages,
    tips,
    former,
  }: { changes: LineageChange[]; lineages: Lineage[]; tips: Tips; former: Outpoint[] },
): Promise<void> {
  // A lineage may lose steps and gain others in one write: it changed from the earliest of them on.
  const from = new Map<string, number>()
  for (const change of changes) {
    const key = formatLineage(change.lineage)
    from.set(key, Math.min(change.from, from.get(key) ?? change.from))
  }
  const all = [...former]
  const changed = [...former]
  const rows: RecordRow[] = []
  for (const lineage of lineages) {
    await yieldBetweenStatements()
    const key = formatLineage(lineage)
    const tip = tips.get(key)
    const first = tip?.first ?? (isComplete(lineage) ? outpointAt(lineage) : undefined)
    if (first === undefined) continue
    all.push(first)
    const attributes = tip?.holder === undefined ? [] : [attribute.owner(tip.holder)]
    if (await isInscribedSince(tables, { lineage, tip, from: from.get(key) })) {
      changed.push(first)
      if (tip !== undefined) attributes.push(...(await lineageAttributes(tables.rows, lineage, tip.step)))
    }
    tables.transactions.listings.find(attributes)
    for (const each of attributes) rows.push(attributeRow(first, each))
  }
  await tables.outputs.deleteAttributes(unique(all, formatOutpoint), OF_TIP)
  await tables.outputs.deleteAttributes(unique(changed, formatOutpoint), OF_LINEAGE)
  await tables.transactions.insertNew('graph_traits', rows)
}

/**
 * Writes the attributes of new lineages whose first output has no MAP, with no inscribed output after it. Most are such, and
 * a transaction may bring thousands, so they are written in bulk.
 *
 * @param names The outpoints of names' origins, as text: a lineage starts there whatever the output received.
 * @returns The lineages that were written, as text: those with one output, which are done, and those with more, of which only
 * the owner is still to be written. All others are left to {@link indexLineages}.
 */
export async function indexFirstAttributes(
  tables: GraphTables,
  { outputs, names }: { outputs: OutputRecord[]; names: ReadonlySet<string> },
): Promise<{ alone: Set<string>; onlyInscribed: Set<string> }> {
  const plain = outputs.filter(({ mapLength, carrier }) => mapLength === undefined && !carrier)
  const outpoints = plain.map(({ outpoint }) => outpoint)
  const alone = new Set((await tables.outputs.aloneAmong(outpoints)).map(formatOutpoint))
  const others = outpoints.filter((outpoint) => !alone.has(formatOutpoint(outpoint)))
  const onlyInscribed = new Set((await tables.outputs.onlyInscribedAmong(others)).map(formatOutpoint))
  const spent = new Set((await tables.outputs.spentAmong(outpoints)).map(formatOutpoint))
  const rows: RecordRow[] = []
  for (const part of parts(plain, ROWS_A_STATEMENT)) {
    for (const { outpoint, content, parent, owner, previous, unsettled } of part) {
      const key = formatOutpoint(outpoint)
      if (!alone.has(key) && !onlyInscribed.has(key)) continue
      const hasOrigin = names.has(key) || (previous === undefined && !unsettled)
      const attributes = [
        ...(owner !== undefined && alone.has(key) && !spent.has(key) ? [attribute.owner(owner)] : []),
        ...(hasOrigin && content ? [attribute.contentType(content.contentType)] : []),
        ...(hasOrigin && content && parent ? [attribute.parent(parent)] : []),
      ]
      tables.transactions.listings.find(attributes)
      rows.push(...attributes.map((each) => attributeRow(outpoint, each)))
    }
    await yieldBetweenStatements()
  }
  await tables.transactions.insertNew('graph_traits', rows)
  return { alone, onlyInscribed }
}

/** @param first The first output of the lineage. */
function attributeRow(first: Outpoint, { kind, hash }: Attribute): RecordRow {
  const { txid, vout } = outpointColumns(first)
  return { trait: hashColumn(hash), lineage_txid: txid, lineage_vout: vout, kind }
}

/** Whether a lineage may be inscribed from a changed step on. Transfers are not. */
async function isInscribedSince(
  tables: GraphTables,
  { lineage, tip, from }: { lineage: Lineage; tip: Tip | undefined; from: number | undefined },
): Promise<boolean> {
  if (from === undefined || from === 0) return from === 0
  if (from === tip?.step) return tip.isInscribed
  return await tables.outputs.isInscribedFrom({ lineage, from })
}

/** The attributes of an ordinal whose lineage is complete, up to a step. */
async function lineageAttributes(rows: Lineages & Maps, lineage: Lineage, to: number): Promise<Attribute[]> {
  const origin = await rows.firstContentOf(lineage)
  if (origin === undefined) return []
  const stretch = { lineage, from: origin.step, to }
  const content = (await rows.latestContent(stretch))?.content
  const parent = await rows.latestParent(stretch)
  const map = await mergedMap(rows, stretch)
  return [
    ...(content ? [attribute.contentType(content.contentType)] : []),
    ...(parent ? [attribute.parent(parent)] : []),
    ...mapAttributes(map ?? EMPTY_MAP),
  ]
}

/**
 * Decides which of the parents that outputs name count: those whose ordinal their transaction spends (BRC-160). It spends the
 * named output itself, or another output of its lineage, so the answer changes when lineages do.
 *
 * @param claims.txids Transactions whose outputs name parents.
 * @param claims.limit About how many to look at; a large one counts for several.
 * @returns The outputs whose parent counts now or no longer, at their places, and the transactions that are left.
 */
export async function decideParents(
  tables: GraphTables,
  { txids, limit }: { txids: string[]; limit: number },
): Promise<{ changed: PlacedOutput[]; left: string[] }> {
  const changed: PlacedOutput[] = []
  const left = [...txids]
  for (let effort = 0; effort < limit; ) {
    const txid = left.pop()
    if (txid === undefined) break
    const claims = await tables.outputs.claimsOf(txid)
    const counting = await countingClaims(tables, { txid, claims })
    effort += 1 + Math.floor((claims.length + counting.spent) / PARTS_OF_ONE)
    for (const claim of claims) {
      const counts = counting.isCounting(claim)
      if (counts === claim.counts) continue
      await tables.outputs.setParentCounts(claim.place, counts)
      changed.push(claim.place)
      // Those that are found by a parent only become more, except for this.
      if (!counts)
        tables.transactions.listings.outdated.add(dependency.children(attribute.parent(claim.parent)))
    }
    await yieldBetweenStatements()
  }
  return { changed, left }
}

/** Whether claims of a transaction count, and how many outputs it spends. */
async function countingClaims(
  { transactions, outputs }: GraphTables,
  { txid, claims }: { txid: string; claims: Claim[] },
): Promise<{ isCounting: (claim: Claim) => boolean; spent: number }> {
  if (claims.length === 0) return { isCounting: () => false, spent: 0 }
  const spent = (await transactions.spendsBy(txid)).map(({ outpoint }) => outpoint)
  const isSpent = new Set(spent.map(formatOutpoint))
  const isSpentLineage = new Set((await outputs.stepsOf(spent)).map(({ lineage }) => formatLineage(lineage)))
  const named = await outputs.stepsOf(claims.map(({ parent }) => parent))
  // The ordinal begins behind its carriers.
  const carriers = await outputs.carriersAmong(named.map(({ outpoint }) => outpoint))
  const isCarrier = new Set(carriers.map(formatOutpoint))
  const ofSpentOrdinals = new Set(
    named
      .filter(({ lineage, outpoint }) => {
        return isSpentLineage.has(formatLineage(lineage)) && !isCarrier.has(formatOutpoint(outpoint))
      })
      .map(({ outpoint }) => formatOutpoint(outpoint)),
  )
  return {
    isCounting: ({ parent }) => {
      const key = formatOutpoint(parent)
      return isSpent.has(key) || ofSpentOrdinals.has(key)
    },
    spent: spent.length,
  }
}

/** Adds the first outputs of incomplete lineages to the queue, and removes those that are none any more. */
export async function queueAncestors(
  tables: GraphTables,
  { firsts, former }: { firsts: Outpoint[]; former: Outpoint[] },
): Promise<void> {
  await tables.outputs.deleteQueued(former)
  if (firsts.length === 0) return
  const arrival = await tables.transactions.scores.next()
  const rows = firsts.map((first) => ({
    ...outpointColumns(first),
    ...{ hole: false, due: 0, arrival, tries: 0, transactions: 0, bytes: 0 },
  }))
  await eachPart(rows, (part) => tables.transactions.insertNew('graph_ancestors', part))
}

/** Puts transactions into that queue by what is known of where the ordinals that they spend go, and takes the others out. */
export async function queueTransactions(
  tables: GraphTables,
  { unplaced, placed }: { unplaced: string[]; placed: string[] },
): Promise<void> {
  const whole = (txid: string): Outpoint => ({ txid, vout: WHOLE_TRANSACTION })
  await queueAncestors(tables, { firsts: unplaced.map(whole), former: placed.map(whole) })
}

/** How many outputs with MAP are read at once. */
const PAGE = 100
/** A snapshot holds at least this much: nearly every ordinal has its MAP in one output or two. */
const LEAST_BYTES = 2048
/** What an output counts for beside the bytes of its MAP: reading it takes a lookup. */
const BYTES_AN_OUTPUT = 256

/**
 * Decides which outputs keep a snapshot of all MAP up to them: those by which the MAP since the last snapshot has grown as
 * long as that snapshot. So a read takes about as many bytes as it returns, however long the ordinal lives, and all snapshots
 * stay within a small multiple of what was inscribed. The decision follows from the lineage alone, in whatever order it was
 * inserted.
 */
class MapSnapshotPolicy {
  private snapshot: number
  private since = 0
  private outputs = 0

  /**
   * @param options.snapshot The length of the last snapshot, in bytes; 0 if there is none.
   * @param options.since The lengths of the MAP of each output after it.
   */
  constructor({ snapshot, since }: { snapshot: number; since: number[] }) {
    this.snapshot = snapshot
    for (const length of since) this.add(length)
  }

  /** Whether the next output keeps a snapshot. @param length Of its own MAP, in bytes. */
  isDue(length: number): boolean {
    this.add(length)
    // The snapshot of a single output would be its own MAP again.
    const isAlone = this.snapshot === 0 && this.outputs === 1
    return !isAlone && this.since >= Math.max(this.snapshot, LEAST_BYTES)
  }

  /** Continues after a snapshot of so many bytes. */
  restart(length: number): void {
    this.snapshot = length
    this.since = 0
    this.outputs = 0
  }

  private add(length: number): void {
    this.since += length + BYTES_AN_OUTPUT
    this.outputs++
  }
}

/**
 * Updates the MAP snapshots along changed lineages, which are complete: without a known origin, nothing reads them, and every
 * earlier step would change all of them.
 */
async function writeMapSnapshots(tables: GraphTables, changes: LineageChange[], tips: Tips): Promise<void> {
  for (const change of changes) {
    const tip = tips.get(formatLineage(change.lineage))
    // Most changes are a transfer at the end, without MAP.
    if (tip !== undefined && (tip.hasMap || change.from < tip.step)) await updateSnapshots(tables, change)
  }
}

async function updateSnapshots(tables: GraphTables, change: LineageChange): Promise<void> {
  await yieldBetweenStatements()
  const { lineage, from } = change
  if (!(await tables.outputs.hasMap({ lineage, from }))) return
  for (const outpoint of await tables.outputs.mergedFrom({ lineage, from }))
    await deleteSnapshot(tables, outpoint)
  // MAP before the first content is not the ordinal's.
  const origin = (await tables.rows.firstContentOf(lineage))?.step
  if (origin === undefined) return
  const policy = await policyAfter(tables, { lineage, from: origin, to: from - 1 })
  for (let next: number | undefined = Math.max(origin, from); next !== undefined; ) {
    const page = await tables.outputs.mapsFrom({ lineage, from: next, limit: PAGE })
    for (const { outpoint, step, length } of page.maps) {
      if (!policy.isDue(length)) continue
      policy.restart(await writeSnapshot(tables, outpoint, { lineage, from: origin, to: step }))
      await yieldBetweenStatements()
    }
    await yieldBetweenStatements()
    next = page.next
  }
}

/** The policy at the end of a stretch. */
async function policyAfter(tables: GraphTables, stretch: Steps): Promise<MapSnapshotPolicy> {
  let snapshot = 0
  const since: number[] = []
  for await (const { merged, length } of partsBackwards(tables.rows, { ...stretch, limit: PAGE })) {
    if (merged) snapshot = length
    else since.push(length)
  }
  return new MapSnapshotPolicy({ snapshot, since })
}

/** Returns its length in bytes. */
async function writeSnapshot(tables: GraphTables, outpoint: Outpoint, stretch: Steps): Promise<number> {
  const bytes = encodeMapState((await mergedMap(tables.rows, stretch)) ?? EMPTY_MAP)
  await writeChunks(tables.transactions, [{ owner: mapOwner({ outpoint, merged: true }), bytes }])
  await tables.outputs.setMerged(outpoint, bytes.length)
  return bytes.length
}

async function deleteSnapshot(tables: GraphTables, outpoint: Outpoint): Promise<void> {
  await tables.transactions.deleteChunks([mapOwner({ outpoint, merged: true })])
  await tables.outputs.setMerged(outpoint, null)
}

/** See `BlocklistStore.add`. */
export async function writeBlocked(tables: GraphTables, record: BlockedRecord): Promise<BlockedRecord> {
  const written = await tables.transactions.setBlocked(record)
  await reindexOrdinal(tables, record)
  return written
}

/** See `BlocklistStore.remove`. */
export async function writeUnblocked(tables: GraphTables, subject: BlockedSubject): Promise<boolean> {
  const wasBlocked = await tables.transactions.deleteBlocked(subject)
  await reindexOrdinal(tables, subject)
  if (!wasBlocked) return false
  await tables.transactions.scores.renewOutputs(await tables.outputs.blockedBy(subject))
  await tables.transactions.scores.write()
  return true
}

/** Blocks an output that the engine evicts; an earlier block by the operator keeps its reason. */
export async function writeEviction(
  tables: GraphTables,
  { outpoint, since }: { outpoint: Outpoint; since: number },
): Promise<BlockedSubject> {
  const subject: BlockedSubject = { kind: 'outpoint', value: formatOutpoint(outpoint) }
  await tables.transactions.insertNew('graph_blocked', [blockedRow({ ...subject, reason: 'evicted', since })])
  await reindexOrdinal(tables, subject)
  return subject
}

/** Updates an ordinal's MAP snapshots and attributes: the MAP of a blocked output does not count at later steps. */
async function reindexOrdinal(tables: GraphTables, { kind, value }: BlockedSubject): Promise<void> {
  if (kind !== 'outpoint') return
  const places = await tables.outputs.stepsOf([parseOutpoint(value)])
  if (places.length === 0) return
  await indexLineages(tables, {
    changed: places,
    lost: places,
    touched: places,
    former: [],
  })
}
