import { decodeMap } from '../../graph/map-coder.js'
import { EMPTY_MAP, MAX_MAP_BYTES, type MapChange, type MapState, mergeMap } from '../../graph/map-merge.js'
import { sha256 } from '../../graph/native-hash.js'
import { joinBytes } from '../../protocol/bytes.js'
import { formatOutpoint } from '../../protocol/outpoint.js'
import type { MapPage, MapPart, Maps, Steps } from './lineages.js'
import type { BlobChunks } from './read-blobs.js'

/**
 * MAP merged along an ordinal. Every output keeps its own MAP as inscribed; some also keep a snapshot of all MAP up to them
 * (`index-ordinals.ts` decides which), so that a read starts at the last snapshot and not at the origin.
 */

/** The owner of a MAP's chunks. Not its hash: what belongs to one output is deleted with that output. */
export function mapOwner({ outpoint, merged }: Pick<MapPart, 'outpoint' | 'merged'>): Buffer {
  return sha256(Buffer.from(`${merged ? 'merged' : 'own'} MAP of ${formatOutpoint(outpoint)}`, 'latin1'))
}

/** How many outputs are read at a time: about as many as lie between two snapshots if their MAP is short. */
const PAGE = 8

/**
 * Merges the MAP of a stretch that starts at the ordinal's origin.
 *
 * @param options.limit How many bytes of MAP may be read.
 * @param options.maps Where the MAP of the stretch is stored, last first, if that is known already.
 * @returns undefined if it exceeds the limit.
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
  if (found.length === 0) return EMPTY_MAP
  const commands = await Promise.all(found.reverse().map((part) => readMap(maps, part)))
  return mergeMap(EMPTY_MAP, commands.flat())
}

/**
 * From the last MAP of a stretch back to the last snapshot, or to the first MAP.
 *
 * @param options.limit How many outputs are read at a time.
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

/**
 * The longest MAP that is read. Everything written now is shorter, as each of its bytes counts for at least one. A store
 * filled by an earlier release may have longer MAP until its index is rebuilt.
 */
const MAX_KEPT_BYTES = 2 * MAX_MAP_BYTES

/** The commands kept with one output. */
export async function readMap(blobs: BlobChunks, part: MapPart): Promise<MapChange[]> {
  if (part.length > MAX_KEPT_BYTES) return [{ command: 'TRUNCATED' }]
  const owner = mapOwner(part)
  const found: Uint8Array[] = []
  for (let length = 0, position = 0; length < part.length; position++) {
    const chunk = await blobs.chunk(owner, position)
    if (chunk === undefined)
      throw new Error(`the MAP of ${formatOutpoint(part.outpoint)} is missing from the store`)
    found.push(chunk)
    length += chunk.length
  }
  return decodeMap(joinBytes(found))
}
