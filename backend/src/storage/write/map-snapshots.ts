import { encodeMapState } from '../../graph/map-coder.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { Change, Steps } from '../read/lineages.js'
import { mapOwner, mergedMap, partsBackwards } from '../read/read-map.js'
import { outpointPair } from '../rows/columns.js'
import { writeChunks } from './blob-chunks.js'
import type { GraphTables } from './graph-tables.js'
import type { Tips } from './index-attributes.js'
import { rest } from './rest.js'

/**
 * Which outputs keep merged MAP: the ones by which the MAP since the last that does has grown as long as that was. So a
 * read takes about as many bytes as it answers with, however long the ordinal lives; and all that is kept stays within a
 * small multiple of what was inscribed, however long a stranger makes it. It follows from the lineage alone, in whatever
 * order it came.
 */

/** Below this much MAP, nothing merged is kept: nearly every ordinal has its MAP in one output or two. */
const LEAST_BYTES = 2048
/** What an output counts for beside the bytes of its MAP: reading it takes a look-up. */
const BYTES_AN_OUTPUT = 256

/** The MAP along a lineage since the last that is kept merged. */
export class MapSnapshotPolicy {
  private kept: number
  private since = 0
  private outputs = 0

  /**
   * @param options.kept How long the last merged MAP is, in bytes.
   * @param options.since The lengths of the MAP of each output behind it.
   */
  constructor({ kept, since }: { kept: number; since: number[] }) {
    this.kept = kept
    for (const length of since) this.add(length)
  }

  /** Whether the next output has to keep all MAP up to it. @param length Of its own MAP, in bytes. */
  isDue(length: number): boolean {
    this.add(length)
    // One output alone is its own merged MAP: kept once more, it would be no sooner read.
    const isAlone = this.kept === 0 && this.outputs === 1
    return !isAlone && this.since >= Math.max(this.kept, LEAST_BYTES)
  }

  /** Goes on from an output that keeps so many bytes. */
  keep(length: number): void {
    this.kept = length
    this.since = 0
    this.outputs = 0
  }

  private add(length: number): void {
    this.since += length + BYTES_AN_OUTPUT
    this.outputs++
  }
}

const PAGE = 100

/** Makes the merged MAP along lineages follow what has changed. */
export async function writeMapSnapshots(tables: GraphTables, changes: Change[], tips: Tips): Promise<void> {
  for (const change of changes) {
    const tip = tips.get(formatOutpoint(change.lineage))
    // Most changes are a transfer at the end, which says nothing.
    if (tip !== undefined && (tip.hasMap || change.from < tip.step)) await keepAlong(tables, change)
  }
}

async function keepAlong(tables: GraphTables, change: Change): Promise<void> {
  await rest()
  const lineage = outpointPair(change.lineage)
  const { from } = change
  if (!(await tables.outputs.hasMap({ lineage, from }))) return
  // Of an ordinal whose origin is not known yet, nobody reads it; and every step before it would change all of it.
  if (!(await tables.rows.isWhole(lineage))) return
  for (const outpoint of await tables.outputs.mergedFrom({ lineage, from })) await drop(tables, outpoint)
  // What was said before there was content was not said of the ordinal.
  const origin = (await tables.rows.firstContentOf(lineage))?.step
  if (origin === undefined) return
  const growth = await growthOver(tables, { lineage, from: origin, to: from - 1 })
  for (let next: number | undefined = Math.max(origin, from); next !== undefined; ) {
    const page = await tables.outputs.mapsFrom({ lineage, from: next, limit: PAGE })
    for (const { outpoint, step, length } of page.maps) {
      if (!growth.isDue(length)) continue
      growth.keep(await keep(tables, outpoint, { lineage, from: origin, to: step }))
      await rest()
    }
    await rest()
    next = page.next
  }
}

/** How long the last merged MAP of a stretch is, and how much was said since. */
async function growthOver(tables: GraphTables, stretch: Steps): Promise<MapSnapshotPolicy> {
  let kept = 0
  const since: number[] = []
  for await (const { merged, length } of partsBackwards(tables.rows, { ...stretch, limit: PAGE })) {
    if (merged) kept = length
    else since.push(length)
  }
  return new MapSnapshotPolicy({ kept, since })
}

/** Returns how many bytes it keeps. */
async function keep(tables: GraphTables, outpoint: Outpoint, stretch: Steps): Promise<number> {
  const bytes = encodeMapState((await mergedMap(tables.rows, stretch)) ?? EMPTY_MAP)
  await writeChunks(tables.transactions, [{ owner: mapOwner({ outpoint, merged: true }), bytes }])
  await tables.outputs.setMerged(outpoint, bytes.length)
  return bytes.length
}

async function drop(tables: GraphTables, outpoint: Outpoint): Promise<void> {
  await tables.transactions.deleteChunks([mapOwner({ outpoint, merged: true })])
  await tables.outputs.setMerged(outpoint, null)
}
