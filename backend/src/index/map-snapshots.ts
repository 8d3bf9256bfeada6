import type { Row, Sql } from '../facts/connection.js'
import { decodeMap, encodeMapState } from '../graph/map-coder.js'
import { EMPTY_MAP, type MapState, mergeMap } from '../graph/map-merge.js'
import { equalBytes } from '../protocol/bytes.js'

/*
 * Some outputs keep a snapshot of all MAP up to them: an output does once the MAP since the last snapshot is as long as that
 * snapshot. So a read takes about as many bytes as it returns, however long the ordinal lives, and all snapshots stay within a
 * small multiple of what was inscribed. Which outputs keep one follows from the lineage alone.
 */

/** The shortest snapshot: nearly every ordinal has its MAP in one output or two. */
const LEAST_BYTES = 2048
/** Added to the MAP bytes of each output, for the look-up that reading it takes. */
const BYTES_AN_OUTPUT = 256

/** The state of an ordinal's MAP at one of its outputs. */
export interface MapPlace {
  /** The last output with MAP that counts, this one included. */
  lastmap: number | null
  /** The last output that keeps a snapshot. */
  snap: number | null
  /** The bytes of MAP after it. */
  since: number
}

/** The place after an output with so many bytes of MAP. */
export function afterMap(
  sql: Sql,
  before: MapPlace,
  { oid, length }: { oid: number; length: number },
): MapPlace {
  const { snap, since } = before
  const bytes = since + length + BYTES_AN_OUTPUT
  // The snapshot of a single output would be its own MAP again.
  const isAlone = snap === null && since === 0
  const least = (): number =>
    sql.get('select length(bytes) as length from snap where oid = ?', snap)?.length ?? 0
  if (isAlone || bytes < LEAST_BYTES || bytes < least()) return { lastmap: oid, snap, since: bytes }
  return { lastmap: oid, snap: oid, since: 0 }
}

/**
 * The merged MAP at an output: the last snapshot, and what came after it.
 *
 * @param limit The most bytes of stored MAP to read; if it takes more, the result is undefined.
 */
export function mapAt(sql: Sql, place: Pick<MapPlace, 'lastmap' | 'snap'>): MapState
export function mapAt(
  sql: Sql,
  place: Pick<MapPlace, 'lastmap' | 'snap'>,
  limit: number | undefined,
): MapState | undefined
export function mapAt(
  sql: Sql,
  { lastmap, snap }: Pick<MapPlace, 'lastmap' | 'snap'>,
  limit = Number.POSITIVE_INFINITY,
): MapState | undefined {
  const maps: Uint8Array[] = []
  let left = limit
  for (let at = lastmap; at !== null; ) {
    const row: Row | undefined = at === snap ? sql.get(SNAPSHOT, at) : sql.get(BEFORE, at)
    if (row === undefined) throw new Error(`the chain of MAP ends at ${at}`)
    maps.push(row.map)
    left -= row.map.length
    if (left < 0) return undefined
    at = row.mprev
  }
  // All at once: each merge counts the bytes of the whole state.
  return mergeMap(EMPTY_MAP, maps.reverse().flatMap(decodeMap))
}

const BEFORE = 'select map, mprev from out where oid = ?'
const SNAPSHOT = 'select bytes as map, null as mprev from snap where oid = ?'

/**
 * Writes the snapshot that an output keeps.
 *
 * @param before The place before that output.
 * @returns Whether the snapshot changed.
 */
export function writeSnapshot(
  sql: Sql,
  { oid, before, map }: { oid: number; before: Pick<MapPlace, 'lastmap' | 'snap'>; map: Uint8Array },
): boolean {
  const bytes = encodeMapState(mergeMap(mapAt(sql, before), decodeMap(map)))
  const known = sql.get('select bytes from snap where oid = ?', oid)?.bytes
  if (known !== undefined && equalBytes(known, bytes)) return false
  sql.run(
    'insert into snap (oid, bytes) values (?1, ?2) on conflict (oid) do update set bytes = ?2',
    oid,
    bytes,
  )
  return true
}

export function deleteSnapshot(sql: Sql, oid: number): void {
  sql.run('delete from snap where oid = ?', oid)
}
