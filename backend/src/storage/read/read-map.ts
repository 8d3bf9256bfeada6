import { decodeMap } from '../../graph/map-coder.js'
import { EMPTY_MAP, MAX_MAP_BYTES, type MapChange, type MapState, mergeMap } from '../../graph/map-merge.js'
import { sha256 } from '../../graph/native-hash.js'
import { joinBytes } from '../../protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { numberIn, type OutpointRow, outpointOf } from '../rows/columns.js'
import type { Steps } from './lineages.js'
import type { BlobChunks } from './read-blobs.js'

/**
 * MAP merged along an ordinal. Every output keeps its own MAP as it was inscribed; and so that a read need not go back
 * to the origin, some keep what all MAP up to them comes to (`map-states.ts` says which). A read merges from the last of
 * those on.
 */

/** An output whose MAP counts: its own, or with `merged` all up to it. */
export interface MapPart {
  outpoint: Outpoint
  merged: boolean
  length: number
}

/** Where MAP stands that an output holds. */
export function mapPart(row: OutpointRow & { map_length: unknown; merged_length: unknown }): MapPart {
  const merged = numberIn(row.merged_length)
  return {
    outpoint: outpointOf(row),
    merged: merged !== undefined,
    length: merged ?? Number(row.map_length),
  }
}

/** Whose pieces hold the MAP of an output. Not its hash: what an output alone has goes when the output goes. */
export function mapOwner({ outpoint, merged }: Pick<MapPart, 'outpoint' | 'merged'>): Buffer {
  return sha256(Buffer.from(`${merged ? 'merged' : 'own'} MAP of ${formatOutpoint(outpoint)}`, 'latin1'))
}

/** A page of MAP that is read backwards. */
export interface MapPage {
  /** In order, the last first. */
  parts: MapPart[]
  /** The step at which what comes before them ends; undefined where nothing does. */
  next: number | undefined
}

/** Where MAP stands along lineages. */
export interface Maps extends BlobChunks {
  /**
   * The last outputs of a stretch that have MAP, without those that are blocked: what such a one says is not said of the
   * ordinal further on either.
   */
  latestMaps(steps: Steps & { limit: number }): Promise<MapPage>
}

/** How many outputs are looked at at once: about as many as stand between two that hold all up to them, where MAP is short. */
const PAGE = 8

/**
 * MAP merged over a stretch that starts at the ordinal's origin.
 *
 * @param options.limit How many bytes of MAP may be read for it.
 * @param options.maps Where MAP stands in the stretch, the last first, where that was read already.
 * @returns undefined where it takes more than the limit.
 */
export async function mergedMap(
  maps: Maps,
  options: Steps & { limit?: number; maps?: () => Promise<MapPart[]> },
): Promise<MapState | undefined> {
  const found: MapPart[] = []
  let left = options.limit ?? Number.POSITIVE_INFINITY
  const parts = await options.maps?.()
  for await (const part of parts ?? partsBackwards(maps, { ...options, limit: PAGE })) {
    left -= part.length
    if (left < 0) return undefined
    found.push(part)
    if (part.merged) break
  }
  return await mergeParts(maps, found.reverse())
}

/**
 * From the last MAP in the stretch back to the one that holds all before it, or to the first.
 *
 * @param options.limit How many outputs are looked at at once.
 */
export async function* partsBackwards(
  maps: Maps,
  { lineage, from, to, limit }: Steps & { limit: number },
): AsyncGenerator<MapPart> {
  for (let last: number | undefined = to; last !== undefined && last >= from; ) {
    const { parts, next }: MapPage = await maps.latestMaps({ lineage, from, to: last, limit })
    for (const part of parts) {
      yield part
      if (part.merged) return
    }
    last = next
  }
}

async function mergeParts(pieces: BlobChunks, ordered: MapPart[]): Promise<MapState> {
  if (ordered.length === 0) return EMPTY_MAP
  const commands = await Promise.all(ordered.map((part) => readMap(pieces, part)))
  return mergeMap(EMPTY_MAP, commands.flat())
}

/**
 * The longest MAP that is read: all that is written now is shorter, as each byte of it counts for one at least. A store
 * that an earlier release filled may have longer, until its index is made anew.
 */
const MAX_KEPT_BYTES = 2 * MAX_MAP_BYTES

/** The commands that one output holds. */
export async function readMap(pieces: BlobChunks, part: MapPart): Promise<MapChange[]> {
  if (part.length > MAX_KEPT_BYTES) return [{ command: 'TRUNCATED' }]
  const owner = mapOwner(part)
  const found: Uint8Array[] = []
  for (let length = 0, position = 0; length < part.length; position++) {
    const piece = await pieces.piece(owner, position)
    if (piece === undefined)
      throw new Error(`the MAP of ${formatOutpoint(part.outpoint)} is not in the store`)
    found.push(piece)
    length += piece.length
  }
  return decodeMap(joinBytes(found))
}
