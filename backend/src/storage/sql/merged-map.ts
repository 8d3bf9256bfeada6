import { decodeMap } from '../../graph/map-coder.js'
import { EMPTY_MAP, type MapState, mergeMap } from '../../graph/map-merge.js'
import { sha256 } from '../../graph/native-hash.js'
import type { MapCommand } from '../../protocol/bitcom.js'
import { joinBytes } from '../../protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { bytesOf, type OutpointRow, outpointOf } from '../columns.js'
import type { Steps } from './lineage-rows.js'
import type { SqlReader } from './sql-reader.js'

/**
 * MAP merged along an ordinal. Every output keeps its own MAP as it was inscribed; and so that a read need not go back
 * to the origin, some keep what all MAP up to them comes to (`map-states.ts` says which). A read merges from the last of
 * those on.
 */

/** An output whose MAP counts: its own, or with `merged` all up to it. */
interface MapPart {
  outpoint: Outpoint
  merged: boolean
  length: number
}

/** Whose pieces hold the MAP of an output. Not its hash: what an output alone has goes when the output goes. */
export function mapOwner({ outpoint, merged }: Pick<MapPart, 'outpoint' | 'merged'>): Buffer {
  return sha256(Buffer.from(`${merged ? 'merged' : 'own'} MAP of ${formatOutpoint(outpoint)}`, 'latin1'))
}

/** Of `graph_outputs`: what an output says that is blocked, is not said of the ordinal further on either. */
export const UNBLOCKED = `not exists (
  select 1 from graph_blocked as blocked where blocked.txid = graph_outputs.txid and blocked.vout = graph_outputs.vout
)`

/** How many outputs are looked at at once: about as many as stand between two that hold all up to them, where MAP is short. */
const PAGE = 8

/**
 * MAP merged over a stretch that starts at the ordinal's origin.
 *
 * @param options.limit How many bytes of MAP may be read for it.
 * @returns undefined where it takes more than the limit.
 */
export async function mergedMap(
  reader: SqlReader,
  options: Steps & { limit?: number },
): Promise<MapState | undefined> {
  const found: MapPart[] = []
  let left = options.limit ?? Number.POSITIVE_INFINITY
  for await (const part of partsBackwards(reader, options)) {
    left -= part.length
    if (left < 0) return undefined
    found.push(part)
  }
  return await mergeParts(reader, found.reverse())
}

/** From the last MAP in the stretch back to the one that holds all before it, or to the first. */
async function* partsBackwards(reader: SqlReader, { lineage, from, to }: Steps): AsyncGenerator<MapPart> {
  for (let last = to; last >= from; ) {
    const rows: MapRow[] = await reader.all(
      `select txid, vout, map_step, map_length, merged_length from graph_outputs
       where lineage_txid = ? and lineage_vout = ? and map_step between ? and ? and ${UNBLOCKED}
       order by map_step desc limit ${PAGE}`,
      [...lineage, from, last],
    )
    for (const row of rows) {
      const merged = row.merged_length !== null
      yield { outpoint: outpointOf(row), merged, length: Number(merged ? row.merged_length : row.map_length) }
      if (merged) return
    }
    const final = rows.at(-1)
    if (final === undefined || rows.length < PAGE) return
    last = Number(final.map_step) - 1
  }
}

interface MapRow extends OutpointRow {
  map_step: unknown
  map_length: unknown
  merged_length: unknown
}

async function mergeParts(reader: SqlReader, ordered: MapPart[]): Promise<MapState> {
  if (ordered.length === 0) return EMPTY_MAP
  const commands: MapCommand[][] = []
  for (const part of ordered) commands.push(await readMap(reader, part))
  return mergeMap(EMPTY_MAP, commands.flat())
}

/** The commands that one output holds. */
export async function readMap(reader: SqlReader, part: MapPart): Promise<MapCommand[]> {
  const owner = mapOwner(part)
  const pieces: Uint8Array[] = []
  for (let length = 0, position = 0; length < part.length; position++) {
    const row = await reader.first('select bytes from graph_pieces where owner = ? and position = ?', [
      owner,
      position,
    ])
    if (row === undefined) throw new Error(`the MAP of ${formatOutpoint(part.outpoint)} is not in the store`)
    const piece = bytesOf(row.bytes)
    pieces.push(piece)
    length += piece.length
  }
  return decodeMap(joinBytes(pieces))
}
