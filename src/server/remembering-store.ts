import { LRUCache } from 'lru-cache'
import type { ByteRange, OrdinalStep } from '../../backend/src/graph/graph-store.js'
import type { MapState } from '../../backend/src/graph/map-merge.js'
import type { GraphRecords, OutputRecord } from '../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'

/** How many answers are kept; of MAP, those of so many characters, so that what is kept stays within some 40 MB. */
const MAX_ANSWERS = 10_000
const MAX_MAP_LENGTH = 4096
/** Bytes of the bodies that are kept, and of the longest of them. */
const MAX_BODIES = 32 * 1024 * 1024
const MAX_BODY = 64 * 1024

/**
 * The embedded store, with what the gateway asks of it over and over kept in memory until the next write. One process has
 * that store, so that no write goes unseen. A body is kept longer: its hash says what it is.
 */
export class RememberingStore extends SqlGraphStore {
  private readonly answers = new LRUCache<string, { value: unknown }>({ max: MAX_ANSWERS })
  private readonly bodies = new LRUCache<string, Uint8Array>({
    maxSize: MAX_BODIES,
    maxEntrySize: MAX_BODY,
    sizeCalculation: ({ length }) => Math.max(length, 1),
  })
  /** How many writes there were: an answer that one may have overtaken is not kept. */
  private writes = 0

  override async record(records: GraphRecords): Promise<void> {
    await this.writing(() => super.record(records))
  }

  override async evict(outpoint: Outpoint): Promise<void> {
    await this.writing(() => super.evict(outpoint))
    this.bodies.clear()
  }

  private async writing(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } finally {
      this.writes++
      this.answers.clear()
    }
  }

  override async output(outpoint: Outpoint): Promise<OutputRecord | undefined> {
    return await this.remember(`output ${formatOutpoint(outpoint)}`, () => super.output(outpoint))
  }

  override async ordinalAt(outpoint: Outpoint, sequence: number): Promise<OrdinalStep | undefined> {
    return await this.remember(`${sequence} ${formatOutpoint(outpoint)}`, () =>
      super.ordinalAt(outpoint, sequence),
    )
  }

  override async heightOf(txid: string): Promise<number | undefined> {
    return await this.remember(`height ${txid}`, () => super.heightOf(txid))
  }

  override async spendersOf(outpoint: Outpoint): Promise<string[]> {
    return await this.remember(`spenders ${formatOutpoint(outpoint)}`, () => super.spendersOf(outpoint))
  }

  override async ownMap(outpoint: Outpoint): Promise<MapState> {
    return await this.remember(`own ${formatOutpoint(outpoint)}`, () => super.ownMap(outpoint), isShort)
  }

  override async mergedMap(outpoint: Outpoint, limit?: number): Promise<MapState | undefined> {
    return await this.remember(
      `merged ${limit} ${formatOutpoint(outpoint)}`,
      () => super.mergedMap(outpoint, limit),
      isShort,
    )
  }

  override async *contentPieces(sha256: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    const kept = this.bodies.get(sha256)
    if (kept !== undefined) {
      yield range === undefined ? kept : kept.subarray(range.from, range.from + range.length)
      return
    }
    let isFirst = true
    for await (const piece of super.contentPieces(sha256, range)) {
      // A body that is short stands in one piece.
      if (isFirst && range === undefined && piece.length <= MAX_BODY) this.bodies.set(sha256, piece)
      isFirst = false
      yield piece
    }
  }

  private async remember<Value>(
    key: string,
    read: () => Promise<Value>,
    keep: (value: Value) => boolean = () => true,
  ): Promise<Value> {
    const known = this.answers.get(key)
    if (known !== undefined) return known.value as Value
    const { writes } = this
    const value = await read()
    // Of what is not there, strangers can ask without end.
    if (value !== undefined && writes === this.writes && keep(value)) this.answers.set(key, { value })
    return value
  }
}

function isShort(map: MapState | undefined): boolean {
  let length = 0
  for (const [key, value] of map ?? []) {
    length += key.length
    for (const text of typeof value === 'string' ? [value] : value) length += text.length
    if (length > MAX_MAP_LENGTH) return false
  }
  return true
}
