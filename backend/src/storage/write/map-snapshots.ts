import { encodeMapState } from '../../graph/map-coder.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { LineageChange, Steps } from '../read/lineages.js'
import { mapOwner, mergedMap, partsBackwards } from '../read/read-map.js'
import { outpointPair } from '../rows/columns.js'
import { writeChunks } from './blob-chunks.js'
import type { GraphTables } from './graph-tables.js'
import type { Tips } from './index-attributes.js'

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

/** Updates the MAP snapshots along changed lineages. */
export async function writeMapSnapshots(
  tables: GraphTables,
  changes: LineageChange[],
  tips: Tips,
): Promise<void> {
  for (const change of changes) {
    const tip = tips.get(formatOutpoint(change.lineage))
    // Most changes are a transfer at the end, without MAP.
    if (tip !== undefined && (tip.hasMap || change.from < tip.step)) await updateSnapshots(tables, change)
  }
}

async function updateSnapshots(tables: GraphTables, change: LineageChange): Promise<void> {
  await yieldBetweenStatements()
  const lineage = outpointPair(change.lineage)
  const { from } = change
  if (!(await tables.outputs.hasMap({ lineage, from }))) return
  // Without a known origin, nothing reads them, and every earlier step would change all of them.
  if (!(await tables.rows.isComplete(lineage))) return
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
