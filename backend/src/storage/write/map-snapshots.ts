import { encodeMapState } from '../../graph/map-coder.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { Change, Steps } from '../read/lineages.js'
import { mapOwner, mergedMap, partsBackwards } from '../read/read-map.js'
import { outpointPair } from '../rows/columns.js'
import { writeChunks } from './blob-chunks.js'
import type { GraphTables } from './graph-tables.js'
import type { Tips } from './index-attributes.js'
import { MapSnapshotPolicy } from './map-snapshot-policy.js'
import { rest } from './rest.js'

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
