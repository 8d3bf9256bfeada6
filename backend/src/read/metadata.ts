import { decodeMap } from '../graph/map-coder.js'
import { EMPTY_MAP, type MapState, mergeMap } from '../graph/map-merge.js'
import { type MapPlace, mapAt } from '../index/map-snapshots.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { Guard } from './guard.js'
import { blobOf, type Reader } from './reader.js'

/**
 * The MAP of outputs, and MAP merged along ordinals. Each output of a lineage points to the latest MAP at or before it and to the
 * latest snapshot, which has all MAP up to there; MAP of blocked outputs is left out.
 */
export class Metadata {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
  ) {}

  /** The MAP of an output alone, as in its script. */
  own(outpoint: Outpoint): MapState {
    this.guard.refuse([outpoint])
    const row = this.reader.answer((sql) => sql.get(OWN, blobOf(outpoint.txid), outpoint.vout))
    return row?.map ? mergeMap(EMPTY_MAP, decodeMap(row.map)) : EMPTY_MAP
  }

  /**
   * The MAP of an ordinal, merged from its origin up to a step; for an output of another value than 1 satoshi, its own.
   *
   * @param limit The most bytes of stored MAP to read; if it takes more, the result is undefined.
   */
  merged(
    { output: { outpoint }, hasMap }: { output: { outpoint: Outpoint }; hasMap: boolean },
    limit?: number,
  ): MapState | undefined {
    this.guard.refuse([outpoint])
    if (!hasMap) return EMPTY_MAP
    return this.reader.answer((sql) => {
      const row = sql.get(LATEST, blobOf(outpoint.txid), outpoint.vout)
      return row === undefined ? EMPTY_MAP : mapAt(sql, row as MapPlace, limit)
    })
  }
}

const AT_OUTPOINT = 'from tx cross join out on tid = tx.id where txid = ? and vout = ? and out.active = 1'
const OWN = `select map ${AT_OUTPOINT} and carrier = 0`
const LATEST = `select lastmap, snap ${AT_OUTPOINT}`
